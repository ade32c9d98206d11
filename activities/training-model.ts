import { ApplicationFailure } from '@temporalio/common';
import { samplerSeed } from '../core/random/seeded.ts';
import type { Moments, Origin } from '../core/training/journal.ts';
import type { TrainingRef } from '../core/training/plan.ts';
import { BlobMissing, type BlobStore } from '../services/blobs/blob-store.ts';
import { BadRequest, type CreatedModel, ServiceFailed, type StatePath, type TinkerClient } from '../services/tinker/index.ts';
import { entriesBack, isState } from './plan-store.ts';
import type { RunRecord } from './run-records.ts';

export type MadeModel = CreatedModel & { readonly origin: Origin; readonly moments: Moments };

type Plan = Pick<TrainingRef, 'base' | 'head'>;

/**
 * A new model with the weights of the plan's newest state that the service still has, else with those of its base: what was trained
 * since is missing in it. Fails with `TrainingLost` when nothing is left to start from.
 */
export async function makeModel(client: TinkerClient, { base, head }: Plan, record: RunRecord, blobs: BlobStore): Promise<MadeModel> {
  const { config, runId } = record;
  const options = { baseModel: config.student.base_model, userMetadata: { stillroom_run: runId } };
  const gone: string[] = [];
  const load = async (path: StatePath, origin: Origin): Promise<MadeModel | null> => {
    const made = await fromState(client, path, options);
    if (made === null) gone.push(path);
    return made && { ...made, origin };
  };
  try {
    for await (const kept of entriesBack(blobs, head)) {
      if (!isState(kept)) continue;
      const { path, updates } = kept.entry;
      const made = await load(path, { entry: kept.ref, path, updates });
      if (made) return made;
    }
  } catch (error) {
    if (error instanceof BlobMissing)
      throw lost(`${saidGone(gone)} what was trained on before them is no longer in the store (${error.message})`);
    throw error;
  }
  const { statePath, updates } = base;
  if (statePath === null) {
    const seed = samplerSeed(`${runId} lora`);
    const made = await client.createModel({ ...options, rank: config.student.lora_rank, seed });
    return { ...made, origin: { entry: null, path: null, updates }, moments: 'fresh' };
  }
  const made = await load(statePath, { entry: null, path: statePath, updates });
  if (made === null) throw head === null ? noStart(statePath) : lost(saidGone(gone));
  return made;
}

type FromState = { readonly baseModel: string; readonly userMetadata: Readonly<Record<string, string>> };

/** Null when the service does not have the state, or cannot load it. */
async function fromState(client: TinkerClient, path: StatePath, options: FromState): Promise<(CreatedModel & { moments: Moments }) | null> {
  const withMoments = await loaded(() => client.createModelFromState(path, { ...options, optimizer: true }));
  if (withMoments) return { ...withMoments, moments: 'loaded' };
  const without = await loaded(() => client.createModelFromState(path, { ...options, optimizer: false }));
  return without && { ...without, moments: 'cold' };
}

/** A service that fails at it may do better the second time. */
async function loaded(load: () => Promise<CreatedModel>, tries = 2): Promise<CreatedModel | null> {
  try {
    return await load();
  } catch (error) {
    if (error instanceof ServiceFailed && tries > 1) return loaded(load, tries - 1);
    if (error instanceof ServiceFailed || error instanceof BadRequest) return null;
    throw error;
  }
}

const saidGone = (gone: readonly string[]) =>
  gone.length === 0 ? 'no state was saved, and' : `the service can load none of ${gone.join(', ')}:`;

/** Nothing was trained yet. */
function noStart(path: StatePath): ApplicationFailure {
  const message = `the service cannot load ${path}, which this run starts from: it has expired there, was deleted, or is of another account. Nothing was trained; start a run from another state`;
  return ApplicationFailure.nonRetryable(message, 'TrainingLost');
}

/** Nothing is left that training could go on from. */
export function lost(why: string): ApplicationFailure {
  const message = `the service has lost this training, and it cannot be rebuilt: ${why}. Weights that were published stay usable; start a new run, from a state that is kept elsewhere if there is one`;
  return ApplicationFailure.nonRetryable(message, 'TrainingLost');
}
