import type { StatePath } from '../../core/ids.ts';
import type { Sampler, TinkerClient, TinkerError, TrainingClient } from '../../services/tinker/index.ts';
import type { RuleInput } from '../../trainer/faults/plan.ts';
import { faultReports, on, putFaults } from '../support/faults.ts';
import { STUDENT } from '../trainer-fixture.ts';
import { ADAM, BATCH, connect, MODEL, PROMPT, SAMPLE } from './client-program.ts';

/** Every kind of call that the client makes, one at a time, against a service that fails at it. */

/** A client in the middle of a run. It gives up soon. */
export type Desk = {
  readonly url: string;
  readonly client: TinkerClient;
  readonly training: TrainingClient;
  readonly sampler: Sampler;
  readonly state: StatePath;
};

const IMPATIENT = { noProgressMs: 300 };

export async function openDesk(url: string): Promise<Desk> {
  await putFaults(url);
  const client = await connect(url, IMPATIENT);
  const model = await client.createModel(MODEL);
  const training = client.training(model.modelId, model);
  const state = await training.saveState('state');
  return { url, client, training, state, sampler: await client.sampler({ baseModel: STUDENT }) };
}

export type Kind = {
  readonly call: string;
  /** What the call is a promise of; null when it is answered at once. */
  readonly future: RuleInput['for'] | null;
  readonly make: (desk: Desk) => Promise<unknown>;
};

export const TRAINING: readonly Kind[] = [
  { call: 'forward_backward', future: 'Forward', make: ({ training }) => training.forward(BATCH, 'cross_entropy') },
  { call: 'forward_backward', future: 'ForwardBackward', make: ({ training }) => training.forwardBackward(BATCH, 'cross_entropy') },
  { call: 'optim_step', future: 'OptimStep', make: ({ training }) => training.optimStep(ADAM) },
  { call: 'save_weights', future: 'SaveWeights', make: ({ training }) => training.saveState('again') },
  { call: 'save_weights_for_sampler', future: 'SaveWeightsForSampler', make: ({ training }) => training.saveForSampler('sampler') },
  { call: 'load_weights', future: 'LoadWeights', make: ({ training, state }) => training.loadState(state, { optimizer: true }) },
];
/** Their answer 422 only says that the service has an older form of the call. */
export const FROM_STATE: Kind = {
  call: 'load_weights',
  future: 'LoadWeights',
  make: ({ client, state }) => client.createModelFromState(state, { ...MODEL, optimizer: true }),
};
export const IN_SESSION: readonly Kind[] = [
  { call: 'create_model', future: 'CreateModel', make: ({ client }) => client.createModel(MODEL) },
  FROM_STATE,
  { call: 'create_sampling_session', future: null, make: ({ client }) => client.sampler({ baseModel: STUDENT }) },
];
export const SAMPLING: readonly Kind[] = [
  { call: 'asample', future: 'Sample', make: ({ sampler }) => sampler.sample(SAMPLE) },
  { call: 'asample', future: 'Sample', make: ({ sampler }) => sampler.promptLogprobs(PROMPT) },
];
const OPENING: Kind = { call: 'create_session', future: null, make: ({ url }) => connect(url, IMPATIENT) };
export const ALL = [...TRAINING, ...IN_SESSION, ...SAMPLING, OPENING];

/** Rows of a table test: a name, what varies, the kind of call. */
export function named<T>(kinds: readonly Kind[], varied: readonly T[]): [string, T, Kind][] {
  return kinds.flatMap((kind, i) =>
    varied.map((each): [string, T, Kind] => [`${i}. ${kind.call} (${kind.future ?? 'no future'})`, each, kind]),
  );
}
export const withFuture = (kinds: readonly Kind[]): Kind[] => kinds.filter(({ future }) => future !== null);

const always = { times: 'always' } as const;

export async function failureOf(work: Promise<unknown>): Promise<TinkerError> {
  const outcome = await work.then(
    () => null,
    (error: TinkerError) => error,
  );
  if (outcome === null) throw new Error('the call succeeded');
  return outcome;
}

/** The failure when every request of a call meets this fault, and how many requests were made. */
export async function failure({ call, make }: Kind, desk: Desk, fault: RuleInput['fault']) {
  await putFaults(desk.url, on(call, fault, always));
  const error = await failureOf(make(desk));
  const [report] = await faultReports(desk.url);
  return { error, requests: report?.matched };
}

/** The same for every poll of the call's future; the call itself is accepted. */
export async function pollFailure({ call, future, make }: Kind, desk: Desk, fault: RuleInput['fault']) {
  const poll = on('retrieve_future', fault, { ...always, ...(future ? { for: future } : {}) });
  const submission = on(call, { kind: 'delay_promise', ms: 1 }, future ? { for: future } : {});
  await putFaults(desk.url, poll, submission);
  const error = await failureOf(make(desk));
  const [polls, submissions] = await faultReports(desk.url);
  return { error, polls: polls?.matched, submissions: submissions?.matched };
}
