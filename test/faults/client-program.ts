import { type ConnectOptions, TinkerClient } from '../../services/tinker/index.ts';
import { STUDENT } from '../trainer-fixture.ts';
import { KEY } from '../trainer-process.ts';

/** One short use of all that a run asks of the service, by the real client. */

export const ids = (text: string): Int32Array => Int32Array.from(text, (char) => char.charCodeAt(0));
export const MODEL = { baseModel: STUDENT, rank: 4, seed: 1 };
export const PROMPT = ids('files key sun\n$ ');
export const SAMPLE = { prompt: PROMPT, maxTokens: 12, temperature: 1, stopTokens: [], seed: 7 };
export const ADAM = { learningRate: 0.02, eps: 1e-8 };
export const BATCH = ['cp sun map\n', 'rm key\n'].map((text) => {
  const tokens = ids(text);
  return { modelInput: tokens.slice(0, -1), targetTokens: tokens.slice(1), weights: new Float32Array(tokens.length - 1).fill(1) };
});

export const connect = (baseUrl: string, options: ConnectOptions = {}): Promise<TinkerClient> =>
  TinkerClient.connect({ baseUrl, apiKey: KEY, ...options });

/** The calls that the program makes, and the futures that it waits for; each at least once. */
export const CALLS = [
  'client/config',
  'create_session',
  'create_model',
  'forward_backward',
  'optim_step',
  'save_weights',
  'save_weights_for_sampler',
  'load_weights',
  'create_sampling_session',
  'asample',
] as const;
export const FUTURES = [
  'CreateModel',
  'ForwardBackward',
  'Forward',
  'OptimStep',
  'SaveWeights',
  'SaveWeightsForSampler',
  'LoadWeights',
  'Sample',
] as const;

/**
 * Trains, saves, goes on from what was saved, and samples. Everything in the outcome follows from the seeds, so two outcomes are the
 * same to the last bit unless a call was lost, made twice, or answered with another's result.
 */
export async function runProgram(url: string, options: ConnectOptions = {}) {
  await using client = await connect(url, options);
  const model = await client.createModel(MODEL);
  const training = client.training(model.modelId, model);
  const losses = [await update(training), await update(training)];
  const state = await training.saveState('state');
  const sampler = await client.sampler({ samplerPath: await training.saveForSampler('sampler') });
  const fork = await client.createModelFromState(state, { ...MODEL, optimizer: true });
  const forked = client.training(fork.modelId, fork);
  losses.push(await update(forked), await lossNow(forked), await update(training), await lossNow(training));
  const { tokens, logprobs, stop } = await sampler.sample(SAMPLE);
  const scores = await sampler.promptLogprobs(PROMPT);
  return { losses, tokens, logprobs, stop, scores: scores.logprobs };
}

type Training = ReturnType<TinkerClient['training']>;

async function update(training: Training): Promise<unknown> {
  const { metrics, lossFnOutputs } = await training.forwardBackward(BATCH, 'cross_entropy');
  const step = await training.optimStep(ADAM);
  return { metrics, lossFnOutputs, step };
}

async function lossNow(training: Training): Promise<unknown> {
  const { metrics, lossFnOutputs } = await training.forward(BATCH, 'cross_entropy');
  return { metrics, lossFnOutputs };
}
