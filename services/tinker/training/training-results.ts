import { BadRequest, ServiceFailed, TrainingStateUnknown } from '../errors.ts';
import { ephemeralSchema, loadedSchema, optimStepSchema, savedExternalSchema, savedSchema } from '../futures/answers.ts';
import { type Future, type RequestType, retrieveJson } from '../futures/futures.ts';
import { mapValues, toNumber } from '../futures/json-results.ts';
import type { Caller } from '../http/caller.ts';
import type { SamplerPath, StatePath } from '../paths.ts';
import type { Sampler } from '../sampling/sampler.ts';
import type { ForwardBackwardOutput } from '../wire/index.ts';
import { retrieveLoss } from './loss-result.ts';
import type { SavedCall } from './pending-call.ts';

export type OptimStepResult = { readonly metrics: Readonly<Record<string, number>> };
export type SavedExternal = { readonly path: string; readonly sizeBytes: number | null };

/** The training calls that answer a future, and what they bring. */
export type CallResults = {
  readonly forward: ForwardBackwardOutput;
  readonly forwardBackward: ForwardBackwardOutput;
  readonly optimStep: OptimStepResult;
  readonly saveState: StatePath;
  readonly saveForSampler: SamplerPath;
  readonly saveAndSample: Sampler;
  readonly saveExternal: SavedExternal;
  /** The path that the service names, where it names one. */
  readonly loadState: string | null;
};
export type CallKind = keyof CallResults;

/** The type that the service is told when a result is fetched. */
export const REQUEST_TYPES: Readonly<Record<CallKind, RequestType>> = {
  forward: 'Forward',
  forwardBackward: 'ForwardBackward',
  optimStep: 'OptimStep',
  saveState: 'SaveWeights',
  saveForSampler: 'SaveWeightsForSampler',
  saveAndSample: 'SaveWeightsForSampler',
  saveExternal: 'SaveWeightsExternal',
  loadState: 'LoadWeights',
};

/** What reading a result needs besides the future. */
export type ResultContext = {
  readonly caller: Caller;
  /** A sampler of a sampling session that a save opened; `isFirst`: nobody else can have one. */
  readonly samplerOf: (samplingSessionId: string, isFirst: boolean) => Sampler;
};

/** `isFirst`: the result is read for the first time, by the process that submitted the call. */
export type Reading = { readonly saved: SavedCall; readonly futures: readonly Future[]; readonly isFirst: boolean };

type Reader<Result> = (context: ResultContext, reading: Reading, signal: AbortSignal | undefined) => Promise<Result>;

const loss =
  (forwardOnly: boolean): Reader<ForwardBackwardOutput> =>
  ({ caller }, { saved: { targetCounts = [] }, futures }, signal) =>
    retrieveLoss(caller, futures, { targetCounts, forwardOnly }, signal);

/** How each call's result is fetched and read. */
export const READERS: { readonly [Kind in CallKind]: Reader<CallResults[Kind]> } = {
  forward: loss(true),
  forwardBackward: loss(false),
  optimStep: async ({ caller }, { futures: [future] }, signal) => {
    const { metrics } = await updating(() => retrieveJson(caller, known(future), optimStepSchema, signal));
    return { metrics: mapValues(metrics ?? {}, toNumber) };
  },
  saveState: async ({ caller }, { futures: [future] }, signal) =>
    (await retrieveJson(caller, known(future), savedSchema, signal)).path as StatePath,
  saveForSampler: async ({ caller }, { futures: [future] }, signal) =>
    (await retrieveJson(caller, known(future), savedSchema, signal)).path as SamplerPath,
  saveAndSample: async ({ caller, samplerOf }, { futures: [future], isFirst }, signal) =>
    samplerOf((await retrieveJson(caller, known(future), ephemeralSchema, signal)).sampling_session_id, isFirst),
  saveExternal: async ({ caller }, { futures: [future] }, signal) => {
    const { path, size_bytes } = await retrieveJson(caller, known(future), savedExternalSchema, signal);
    return { path, sizeBytes: size_bytes ?? null };
  },
  loadState: async ({ caller }, { futures: [future] }, signal) =>
    (await retrieveJson(caller, known(future), loadedSchema, signal)).path ?? null,
};

/** Nobody can say whether an update was made whose submission or result was answered with something odd. */
export async function updating<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ServiceFailed)) throw error;
    const message = `the update may or may not have been made (${error.message}); rebuild the model from its last saved state`;
    throw new TrainingStateUnknown(message, { ...error, call: 'optim_step', cause: error });
  }
}

function known(future: Future | undefined): Future {
  if (future === undefined) throw new BadRequest('a saved call names at least one request id', { call: 'result' });
  return future;
}
