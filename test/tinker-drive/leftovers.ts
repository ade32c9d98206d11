import { setTimeout as sleep } from 'node:timers/promises';
import type { SamplerPath, StatePath } from '../../core/ids.ts';
import type { TinkerClient } from '../../services/tinker/index.ts';

const LONGEST_MS = 20_000;

type Deleter = Pick<TinkerClient['rest']['checkpoints'], 'list' | 'unpublish' | 'delete'>;

/** What a drive has saved and not deleted; null for what it has not saved, or has deleted. */
export type Leftovers = {
  /** The model that saved. */
  readonly modelId: string | null;
  readonly sampler: SamplerPath | null;
  /** May be published. */
  readonly state: StatePath | null;
};

/** Deletes what a drive would leave with the service. No step: nothing of it is recorded, and only what stays is told. */
export async function deleteLeftovers(
  { checkpoints }: { readonly checkpoints: Deleter },
  { modelId, sampler, state }: Leftovers,
): Promise<void> {
  if (state !== null) await inTime(() => checkpoints.unpublish(state)).catch(() => false);
  // Some services list the nameless save for a sampler too.
  const listed = modelId === null ? [] : await inTime(() => checkpoints.list(modelId)).catch(() => null);
  const paths = listed?.map(({ path }) => path) ?? [sampler, state].filter((path) => path !== null);
  for (const path of paths) {
    try {
      await inTime(() => checkpoints.delete(path));
    } catch (error) {
      console.log(`left with the service: ${path} (${error instanceof Error ? error.message : String(error)})`);
    }
  }
}

/** A path of a form that our client does not know makes it throw at once. */
async function inTime<T>(call: () => Promise<T>): Promise<T> {
  const timer = new AbortController();
  const tooLate = sleep(LONGEST_MS, null, { signal: timer.signal }).then(() => Promise.reject(new Error('no answer in time')));
  try {
    return await Promise.race([call(), tooLate]);
  } finally {
    tooLate.catch(() => null);
    timer.abort();
  }
}
