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

const everyRequest = ({ call, future }: Kind, fault: RuleInput['fault']): RuleInput[] => [
  on(call, fault, { ...always, ...(future ? { for: future } : {}) }),
];
/** Polls of the call's future meet the fault; the submission is accepted and counted. */
const everyPoll = ({ call, future }: Kind, fault: RuleInput['fault']): RuleInput[] => [
  on('retrieve_future', fault, { ...always, ...(future ? { for: future } : {}) }),
  on(call, { kind: 'delay_promise', ms: 1 }, future ? { for: future } : {}),
];

/** The failure when every request of a call meets this fault, and how many requests were made. */
export async function failure(kind: Kind, desk: Desk, fault: RuleInput['fault']) {
  await putFaults(desk.url, ...everyRequest(kind, fault));
  const error = await failureOf(kind.make(desk));
  const [report] = await faultReports(desk.url);
  return { error, requests: report?.matched };
}

/** The same for every poll of the call's future; the call itself is accepted. */
export async function pollFailure(kind: Kind, desk: Desk, fault: RuleInput['fault']) {
  await putFaults(desk.url, ...everyPoll(kind, fault));
  const error = await failureOf(kind.make(desk));
  const [polls, submissions] = await faultReports(desk.url);
  return { error, polls: polls?.matched, submissions: submissions?.matched };
}

/** The same for several kinds at once, each with a client of its own: for faults that the client waits at. No two of a call for the same future. */
export async function failuresAtOnce(kinds: readonly Kind[], url: string, fault: RuleInput['fault'], at: 'request' | 'poll') {
  const rulesOf = at === 'request' ? everyRequest : everyPoll;
  const desks = await Promise.all(kinds.map(async (kind) => ({ kind, desk: await openDesk(url) })));
  await putFaults(url, ...kinds.flatMap((kind) => rulesOf(kind, fault)));
  const errors = await Promise.all(desks.map(({ kind, desk }) => failureOf(kind.make(desk))));
  const counts = (await faultReports(url)).map(({ matched }) => matched);
  await putFaults(url);
  await Promise.all(desks.map(({ desk }) => desk.client.close()));
  const perKind = counts.length / kinds.length;
  return errors.map((error, i) => ({ call: kinds[i]?.call, error, counts: counts.slice(perKind * i, perKind * (i + 1)) }));
}

/** The kinds in as few groups as can be met by faults at once. */
export function groups(kinds: readonly Kind[]): Kind[][] {
  const found: Kind[][] = [];
  for (const kind of kinds) {
    const isFree = (group: readonly Kind[]) => !group.some(({ call, future }) => call === kind.call && future === kind.future);
    const group = found.find(isFree);
    if (group === undefined) found.push([kind]);
    else group.push(kind);
  }
  return found;
}
