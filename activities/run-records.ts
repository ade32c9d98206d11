import type { RunConfig } from '../core/config/index.ts';
import type { BlobRef } from '../core/ids.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import type { TrajectoryDocument } from '../core/run/trajectory-file.ts';
import type { PinnedTask } from '../core/run/trial.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { putJson, readJson } from '../services/blobs/json.ts';
import type { JobTemplate } from '../services/harbor/index.ts';

/** Everything a run was pinned to, as its activities read it: the history's record, the whole config and the job template. */
export type RunRecord = Omit<PinnedRun, 'ref' | 'train' | 'holdout'> & {
  readonly train: readonly PinnedTask[];
  readonly holdout: readonly PinnedTask[];
  /** Of the training tasks, in their order: digests of what they ask and check, whatever they are called. */
  readonly trainContents: readonly string[];
  readonly config: RunConfig;
  readonly jobTemplate: JobTemplate;
  /** Of `warmup.trajectories_from`; null where the run samples its own or has no warm-up. */
  readonly warmupTrajectories: TrajectoryDocument | null;
  /** Execution that pinned it; a second run of the same name is another execution. */
  readonly executionId: string;
};

/** Records that a worker keeps in memory: some have thousands of tasks, and a worker lives for many runs. */
const MOST_KNOWN = 50;

/** Reads pinned runs from the blob store; a record never changes, so each worker reads it once while the run goes on. */
export class RunRecords {
  private readonly blobs: BlobStore;
  private readonly known = new Map<BlobRef, Promise<RunRecord>>();

  constructor(blobs: BlobStore) {
    this.blobs = blobs;
  }

  async pin(record: RunRecord): Promise<BlobRef> {
    return putJson(this.blobs.of(record.runId), record);
  }

  load(ref: BlobRef): Promise<RunRecord> {
    const known = this.known.get(ref);
    if (known) return this.asNewest(ref, known);
    // No schema: `pin` above wrote it, the store vouches for its bytes, and its parts were each checked when the run was resolved.
    const loading = readJson(this.blobs, ref).then((record) => record as RunRecord);
    loading.catch(() => this.known.delete(ref));
    return this.asNewest(ref, loading);
  }

  private asNewest(ref: BlobRef, record: Promise<RunRecord>): Promise<RunRecord> {
    this.known.delete(ref);
    this.known.set(ref, record);
    const [oldest] = this.known.keys();
    if (this.known.size > MOST_KNOWN && oldest !== undefined) this.known.delete(oldest);
    return record;
  }
}
