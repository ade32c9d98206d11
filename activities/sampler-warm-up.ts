import { cancellationSignal } from '@temporalio/activity';
import { NO_USAGE, type Usage } from '../core/measures/usage.ts';
import { samplerBook } from '../core/recordings/book-name.ts';
import { usageOf } from '../core/recordings/books.ts';
import { type PaidCall, standingAs } from '../core/recordings/paid-call.ts';
import type { PublishedSampler } from '../core/run/trial.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { TinkerError } from '../services/tinker/index.ts';
import type { ModelAccess } from './model-access.ts';
import { openBook, type PaidCalls, unforked } from './paid-calls.ts';
import { sampleAnswer } from './recorded-sampler.ts';

/** A service loads fresh weights when they are first asked for, on each of its replicas: these calls wait for that, and not a batch of trials. */
const CALLS = 8;
/** Ids of the prompt at most. */
const PROMPT_TOKENS = 16;
/** What has not loaded by then, the first trials wait for. */
const PATIENCE_MS = 120_000;

export type WarmUpDeps = { readonly objects: ObjectStore; readonly models: Pick<ModelAccess, 'sampling'> };

/** `name`: what the service keeps the weights under. `ids`: any that the model knows; none are needed. */
export type WarmUpOrder = {
  readonly runId: string;
  readonly name: string;
  readonly sampler: PublishedSampler;
  readonly ids: readonly number[];
};

/**
 * One token from fresh weights, eight times at once. Whatever becomes of the calls, the weights are published; what they took is in the
 * result. An attempt that comes again leaves them as they were.
 */
export function warmUpSampler({ runId, name, sampler, ids }: WarmUpOrder, { objects, models }: WarmUpDeps) {
  return unforked(async (): Promise<{ usage: Usage; notices: readonly string[] }> => {
    const calls = await openBook(objects, runId, samplerBook(name));
    const isFirst = calls.calls.length === 0;
    const failures = isFirst ? await firstCalls(calls, sampler, ids, models) : [];
    const usage = calls.calls.length === 0 ? NO_USAGE : usageOf(calls.calls.map(givenUp), `sampler ${name}`);
    const [first] = failures;
    if (first === undefined || failures.length < CALLS) return { usage, notices: [] };
    return { usage, notices: [`the first ${CALLS} calls of sampler ${name} failed, which trials may survive: ${first}`] };
  });
}

/** Nobody waits again for an answer that the service keeps back until it is paid, so its call is lost. */
const givenUp = (call: PaidCall): PaidCall => (standingAs(call) === null ? call : { ...call, outcome: null });

/** Why calls failed. @throws StaleAttempt, and what the store throws: without a book nothing is asked */
async function firstCalls(calls: PaidCalls, sampler: PublishedSampler, ids: readonly number[], models: WarmUpDeps['models']) {
  const prompt = Int32Array.from(ids.length > 0 ? ids.slice(0, PROMPT_TOKENS) : [0]);
  const signal = AbortSignal.any([cancellationSignal(), AbortSignal.timeout(PATIENCE_MS)]);
  const order = { kind: 'sample', who: 'student', model: sampler.path, promptTokens: prompt.length, mostSampledTokens: 1 } as const;
  const failures: string[] = [];
  const one = async (seed: number) => {
    const ask = () =>
      models.sampling(sampler, (each) => each.sample({ prompt, maxTokens: 1, temperature: 1, stopTokens: [], seed, signal }));
    try {
      await calls.call({ ...order, key: `first ${seed}` }, async () => sampleAnswer(await ask(), false));
    } catch (error) {
      if (!(error instanceof TinkerError) && !signal.aborted) throw error;
      failures.push(error instanceof Error ? error.message : String(error));
    }
  };
  await Promise.all(Array.from({ length: CALLS }, (_, seed) => one(seed)));
  return failures;
}
