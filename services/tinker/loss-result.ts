import type { Caller } from './caller.ts';
import { combineOutputs } from './combine.ts';
import { forwardBackwardOf } from './decode-result.ts';
import { BadRequest, ServiceFailed, TrainingStateUnknown } from './errors.ts';
import { type Future, retrieve } from './futures.ts';
import type { ForwardBackwardOutput } from './wire/index.ts';

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
    const outputs = await allOrNone(futures, signal, async (future, signal) =>
      forwardBackwardOf(await retrieve(caller, future, signal), future),
    );
    return combined(outputs, targetCounts);
  });
}

function combined(outputs: readonly ForwardBackwardOutput[], targetCounts: TargetCounts): ForwardBackwardOutput {
  for (const [i, { lossFnOutputs }] of outputs.entries()) requireResultsFor(targetCounts[i] ?? [], lossFnOutputs);
  try {
    return combineOutputs(outputs);
  } catch (cause) {
    throw new ServiceFailed(cause instanceof Error ? cause.message : String(cause), { call: 'ForwardBackward', cause });
  }
}

/**
 * Fewer log-probabilities than targets are the server's to decide, as for the official client; more belong to something else.
 * @throws ServiceFailed when there is not one result per datum, or there are more log-probabilities than targets
 */
function requireResultsFor(targetCounts: readonly (number | null)[], outputs: ForwardBackwardOutput['lossFnOutputs']): void {
  if (outputs.length !== targetCounts.length) {
    throw new ServiceFailed(`sent ${targetCounts.length} datums, got results for ${outputs.length}`, { call: 'ForwardBackward' });
  }
  for (const [i, { logprobs }] of outputs.entries()) {
    const sent = targetCounts[i] ?? null;
    const got = logprobs?.shape[0] ?? 0;
    if (sent === null || got <= sent) continue;
    throw new ServiceFailed(`datum ${i} has ${sent} target tokens, its result ${got} log-probabilities`, {
      call: 'ForwardBackward',
    });
  }
}

/** When one of several chunks is judged bad, the others' gradients may have been added: it is no longer just a bad request. */
export async function keepingBlame<T>(chunkCount: number, forwardOnly: boolean, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isJudged = error instanceof BadRequest || error instanceof ServiceFailed;
    if (!isJudged || chunkCount === 1 || forwardOnly) throw error;
    throw new TrainingStateUnknown(
      `one of ${chunkCount} chunks failed, the others may have added their gradients (${error.message}); rebuild the model from its last saved state`,
      { ...error, cause: error },
    );
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
