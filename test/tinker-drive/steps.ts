import type { AdamParams, ForwardBackwardOutput, LossFnConfig, LossRows, Sampler, TinkerClient } from '../../services/tinker/index.ts';
import { deleteLeftovers } from './leftovers.ts';
import { made, type StepValue } from './made.ts';
import type { Recorder, StepOutcome, Work } from './recorder.ts';
import { capabilitiesShape, checkpointShape, infoShape, runShape, weightsShape } from './rest-shape.ts';
import { numbers, sampleShape } from './sdk-shape.ts';
import type { StepName } from './step-names.ts';
import { asOutcome, fresh, fromState, type Trainee } from './trainee.ts';

/**
 * The calls that the official client's recordings were made with, in their order and with their arguments: the training of two
 * short sequences, samples from several sources, saved state, listings, and what a server says to calls it should refuse.
 */

const A = [1, 50, 60, 70, 80, 90, 2];
const B = [1, 100, 101, 102, 2];
const PROMPT = Int32Array.of(1, 50, 60, 70);
const STEP_1: AdamParams = { learningRate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.01, gradClipNorm: 1 };
const STEP_2: AdamParams = { learningRate: 5e-3 };
const PPO_CLIP = { clip_low_threshold: 0.8, clip_high_threshold: 1.2 };

export type Drive = {
  readonly recorder: Recorder;
  readonly client: TinkerClient;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
};

export async function drive({ recorder, client, baseUrl, apiKey, model }: Drive): Promise<void> {
  const step: Step = async (name, seconds, work) => ({
    step: name,
    value: await recorder.step(name, work, ...(seconds === null ? [] : [seconds * 1000])),
  });
  const raw = (path: string, body: object, signal: AbortSignal) => rawPost(`${baseUrl}/api/v1/${path}`, apiKey, body, signal);

  await step('get_server_capabilities', null, async () => shown(capabilitiesShape(await client.capabilities())));
  const first = await step('create_lora_training_client', 180, (signal) => fresh(client, model, 7, signal));
  await step('get_info', null, async () => shown(infoShape(await client.getInfo(made(first).modelId))));
  const losses = [datum(A, { weights: [0, 0, 1, 1, 1, 1] }), datum(B, { weights: [0.5, 1, 0, 1] })];
  const scores = async (trainee: Trainee, signal: AbortSignal) =>
    asOutcome(await trainee.do((training) => training.forward(losses, 'cross_entropy', { signal })));
  const forward = async (trainee: StepValue<Trainee>, signal: AbortSignal) => scores(made(trainee), signal);
  await step('forward_cross_entropy', 180, (signal) => forward(first, signal));
  const scored = await step('forward_backward_cross_entropy', 180, async (signal) =>
    asOutcome(await made(first).do((training) => training.forwardBackward(losses, 'cross_entropy', { signal }))),
  );
  await step('optim_step_adam', 120, async (signal) => shown(await made(first).do((training) => training.optimStep(STEP_1, { signal }))));
  await step('forward_cross_entropy_after', 120, (signal) => forward(first, signal));

  const policy = policyDatums(scored.value);
  const backward = (trainee: StepValue<Trainee>, loss: string, lossConfig: LossFnConfig) => async (signal: AbortSignal) =>
    asOutcome(await made(trainee).do((training) => training.forwardBackward(policy, loss, { lossConfig, signal })));
  await step('forward_backward_importance_sampling', 120, backward(first, 'importance_sampling', {}));
  await step('forward_backward_ppo', 120, backward(first, 'ppo', PPO_CLIP));
  await step('optim_step_2', 120, async (signal) => shown(await made(first).do((training) => training.optimStep(STEP_2, { signal }))));
  const samplerPath = await step('save_weights_for_sampler', 120, async (signal) => {
    const path = await made(first).do((training) => training.saveForSampler('sampler-001', { signal }));
    return { value: path, result: { path, type: 'save_weights_for_sampler' } };
  });
  const fromPath = await step('create_sampling_client_from_path', 120, async () =>
    opened(await client.sampler({ samplerPath: made(samplerPath) })),
  );
  const ephemeral = await step('save_weights_and_get_sampling_client', 120, async (signal) =>
    opened(await made(first).do((training) => training.saveAndSample({ signal }))),
  );
  await samples(step, fromPath.value === null && ephemeral.value !== null ? ephemeral : fromPath);
  await step('sample_base_model', 120, async (signal) =>
    sampled(await client.sampler({ baseModel: model }), { maxTokens: 4, temperature: 0, seed: 1, signal }),
  );

  const state = await step('save_state', 120, async (signal) => {
    const path = await made(first).do((training) => training.saveState('state-001', { signal }));
    return { value: path, result: { path, type: 'save_weights' } };
  });
  const { checkpoints, trainingRuns, weights } = client.rest;
  await step('list_checkpoints', 30, async () => {
    const listed = await checkpoints.list(made(first).modelId);
    return shown({ checkpoints: listed.map(checkpointShape), cursor: null });
  });
  await step('get_training_run', 30, async () => shown(runShape(await trainingRuns.get(made(first).modelId))));
  await step('list_training_runs', 30, async () => {
    const { items, totalCount } = await trainingRuns.page({ limit: 5 });
    return shown({ training_runs: items.map(runShape), cursor: { offset: 0, limit: 5, total_count: totalCount } });
  });
  await step('weights_info', 30, async () => shown(weightsShape(await weights.info(made(state)))));
  const continued = (optimizer: boolean) => async (signal: AbortSignal) =>
    scores(await fromState(client, made(state), { optimizer, signal }), signal);
  await step('create_training_client_from_state', 120, continued(false));
  await step('create_training_client_from_state_with_optimizer', 120, continued(true));
  const second = await step('create_second_training_client', 120, (signal) => fresh(client, model, 8, signal));
  const load = (optimizer: boolean) => (signal: AbortSignal) =>
    made(second).do(async (training) => {
      const pending = await training.submitLoadState(made(state), { optimizer, signal });
      return shown({ path: await pending.result({ signal }), model_id: training.modelId, type: 'load_weights' });
    });
  await step('load_state_on_fresh_client', 60, load(false));
  await step('forward_after_load_state', 60, (signal) => forward(second, signal));
  await step('load_state_with_optimizer_not_first', 60, load(true));
  const third = await step('create_third_training_client', 120, (signal) => fresh(client, model, 9, signal));
  await step('forward_backward_cispo', 30, backward(third, 'cispo', PPO_CLIP));
  const fourth = await step('create_fourth_training_client', 120, (signal) => fresh(client, model, 10, signal));
  await step('forward_backward_dro', 30, backward(fourth, 'dro', { beta: 0.05 }));
  await step('set_checkpoint_ttl', 20, async () => done(await checkpoints.setTtl(made(state), 7200)));
  await step('publish_checkpoint', 20, async () => done(await checkpoints.publish(made(state))));
  const deleted = await step('delete_checkpoint', 30, async () => {
    await checkpoints.delete(made(state));
    return { value: true, result: null };
  });
  await step('raw_unload_model', 30, (signal) => raw('unload_model', { model_id: made(fourth).modelId, type: 'unload_model' }, signal));
  await step('raw_unknown_future', 70, (signal) => raw('retrieve_future', { request_id: '999999' }, signal));
  await deleteLeftovers(client.rest, {
    modelId: first.value?.modelId ?? null,
    sampler: samplerPath.value,
    state: deleted.value ? null : state.value,
  });
  await step('service_client_close', 20, async () => shown((await client.close('success')) ?? null));
}

type Step = <T>(name: StepName, seconds: number | null, work: Work<T>) => Promise<StepValue<T>>;

async function samples(step: Step, sampler: StepValue<Sampler>): Promise<void> {
  const ask = (options: Omit<Parameters<typeof sampled>[1], 'signal'>) => (signal: AbortSignal) =>
    sampled(made(sampler), { ...options, signal });
  const greedy = await step('sample_greedy', 180, ask({ maxTokens: 8, temperature: 0, seed: 42 }));
  const two = { numSamples: 2, maxTokens: 8, temperature: 1, seed: 42 };
  await step('sample_seed42_n2', 180, ask(two));
  await step('sample_seed42_n2_again', 180, ask(two));
  const tokens = greedy.value?.sequences[0]?.tokens ?? [5, 5, 5];
  const stop = tokens[Math.min(2, tokens.length - 1)] ?? 5;
  await step('sample_stop_token_ids', 120, ask({ maxTokens: 8, temperature: 0, seed: 1, stop: [stop] }));
  await step('sample_stop_strings', 120, ask({ maxTokens: 8, temperature: 0, seed: 1, stop: ['zz', 'qq'] }));
  await step('sample_top_k_top_p', 120, ask({ maxTokens: 4, temperature: 0.7, seed: 3, topK: 5, topP: 0.9 }));
  const short = { maxTokens: 2, temperature: 0, seed: 1 };
  await step('sample_prompt_logprobs_topk', 180, ask({ ...short, includePromptLogprobs: true, topkPromptLogprobs: 3 }));
  await step('sample_topk_sample_logprobs', 60, ask({ ...short, topkSampleLogprobs: 2 }));
  await step('compute_logprobs', 120, async (signal) =>
    shown(numbers((await made(sampler).promptLogprobs(Int32Array.from(A), { signal })).logprobs)),
  );
}

async function sampled(sampler: Sampler, options: Omit<Parameters<Sampler['sampleAll']>[0], 'prompt'>) {
  const sample = await sampler.sampleAll({ prompt: PROMPT, ...options });
  return { value: sample, result: sampleShape(sample) };
}

function datum(
  tokens: readonly number[],
  rows: Readonly<Record<'weights' | 'logprobs' | 'advantages', readonly number[]>> | object,
): LossRows {
  const lists = Object.fromEntries(Object.entries(rows).map(([name, values]) => [name, Float32Array.from(values as number[])]));
  return { modelInput: Int32Array.from(tokens.slice(0, -1)), targetTokens: Int32Array.from(tokens.slice(1)), ...lists };
}

/** The log-probabilities are those of the weights before the first update. */
function policyDatums(scored: ForwardBackwardOutput | null): LossRows[] {
  const logprobs = (i: number, length: number) => {
    const values = scored?.lossFnOutputs[i]?.logprobs?.values;
    return values === undefined ? new Array<number>(length).fill(-1) : Array.from(values, Number).slice(0, length);
  };
  return [
    datum(A, { logprobs: logprobs(0, 6), advantages: [0, 0, 1, 1, -0.5, 0.25] }),
    datum(B, { logprobs: logprobs(1, 4), advantages: [1, -1, 0.5, 0] }),
  ];
}

function shown<T>(result: T): StepOutcome<T> {
  return { value: result, result };
}

function opened(sampler: Sampler): StepOutcome<Sampler> {
  return { value: sampler, result: '<client object>' };
}

/** A server without the call is no failure of ours. */
function done(isSupported: boolean): StepOutcome<null> {
  return { value: null, result: isSupported ? null : { supported: false } };
}

async function rawPost(url: string, apiKey: string, body: object, signal: AbortSignal) {
  const headers = { 'content-type': 'application/json', 'x-api-key': apiKey };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal });
  return shown({ status: response.status, body: (await response.text()).slice(0, 300) });
}
