import { bookWithout, type SavedPath } from '../core/training/checkpoint-ledger.ts';
import type { RunFacts } from './run-state.ts';

/** Whether the facts name a path as theirs to sample from or to go on from. */
export function isUsed({ sampler, published, savedState, weights }: RunFacts, path: SavedPath): boolean {
  return [sampler?.path, published?.path, savedState?.path, weights?.samplerPath, weights?.statePath].includes(path);
}

/** Nothing may be sampled from, or go on from, what is gone. */
export function forget(facts: RunFacts, gone: ReadonlySet<SavedPath>): void {
  facts.checkpoints = bookWithout(facts.checkpoints, (path) => gone.has(path));
  if (facts.savedState && gone.has(facts.savedState.path)) facts.savedState = null;
  if (facts.published && gone.has(facts.published.path)) facts.published = null;
  if (facts.sampler && gone.has(facts.sampler.path)) facts.sampler = null;
}
