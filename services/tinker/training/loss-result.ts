import { BadRequest, ServiceFailed, TrainingStateUnknown } from '../errors.ts';
import { forwardBackwardOf } from '../futures/decode-result.ts';
import { type Future, retrieve } from '../futures/futures.ts';
import type { Caller } from '../http/caller.ts';
import type { ForwardBackwardOutput } from '../wire/index.ts';
import { combineOutputs } from './combine.ts';

export type TargetCounts = readonly (readonly (number | null)[])[];

/**
 * Waits for the results of a batch's chunks, in their order, and joins them.
 * `targetCounts`: chunk by chunk, how many targets each datum has; null where it has none.
 */
export async function retrieveLoss(
  caller: Caller,
  futures: readonly Future[],
  { targetCounts, forwardOnly }: { readonly targetCounts: TargetCounts; readonly forwardOnly: boolean },
  signal: AbortSignal | undefined,
): Promise<ForwardBackwardOutput> {
  return keepingBlame(futures.length, forwardOnly, async () => {
    const chunks = futures.map((future, i) => ({ future, sent: targetCounts[i] ?? [] }));
    const outputs = await allOrNone(chunks, signal, async ({ future, sent }, signal) => {
      const output = forwardBackwardOf(await retrieve(caller, future, signal), future, caller);
      requireResultsFor(sent, output.lossFnOutputs, future);
      return output;
    });
    return combined(outputs, futures, caller);
  });
}

function combined(outputs: readonly ForwardBackwardOutput[], [first]: readonly Future[], caller: Caller): ForwardBackwardOutput {
  try {
    return combineOutputs(outputs);
  } catch (error) {
    const context = { call: first?.type ?? 'ForwardBackward', requestId: first?.requestId ?? null };
    throw new ServiceFailed(caller.scrub(error instanceof Error ? error.message : String(error)), context);
  }
}

/**
 * Fewer log-probabilities than targets are the server's to decide, as for the official client; more belong to something else.
 * @throws ServiceFailed when there is not one result per datum, or there are more log-probabilities than targets
 */
function requireResultsFor(
  targetCounts: readonly (number | null)[],
  outputs: ForwardBackwardOutput['lossFnOutputs'],
  { type, requestId }: Future,
): void {
  const context = { call: type, requestId };
  if (outputs.length !== targetCounts.length) {
    throw new ServiceFailed(`sent ${targetCounts.length} datums, got results for ${outputs.length}`, context);
  }
  for (const [i, { logprobs }] of outputs.entries()) {
    const sent = targetCounts[i] ?? null;
    const got = logprobs?.shape[0] ?? 0;
    if (sent === null || got <= sent) continue;
    throw new ServiceFailed(`datum ${i} has ${sent} target tokens, its result ${got} log-probabilities`, context);
  }
}

/**
 * Gradients may have been added when the service failed at a chunk or answered something odd, and by the others when one of several
 * chunks is judged bad: only a bad request that was all of the batch leaves the model as it was.
 */
export async function keepingBlame<T>(chunkCount: number, forwardOnly: boolean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isUnclear = error instanceof ServiceFailed || (error instanceof BadRequest && chunkCount > 1);
    if (!isUnclear || forwardOnly) throw error;
    const said = error.message.replace(`${error.call}: `, '');
    const what = chunkCount === 1 ? 'the batch failed, but may' : `one of ${chunkCount} chunks failed, the others may`;
    throw new TrainingStateUnknown(`${what} have added gradients (${said}); rebuild the model from its last saved state`, {
      ...error,
      cause: error,
    });
  }
}

/** Runs all at once; the first failure aborts the rest, so that nothing goes on polling for a lost cause. */
export async function allOrNone<Item, Result>(
  items: readonly Item[],
  signal: AbortSignal | undefined,
  work: (item: Item, signal: AbortSignal | undefined) => Promise<Result>,
): Promise<Result[]> {
  const [only] = items;
  if (only !== undefined && items.length === 1) return [await work(only, signal)];
  const rest = new AbortController();
  const either = signal === undefined ? rest.signal : AbortSignal.any([signal, rest.signal]);
  try {
    return await Promise.all(items.map((item) => work(item, either)));
  } catch (error) {
    rest.abort(error);
    throw error;
  }
}
