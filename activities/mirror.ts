import type { BlobRef } from '../core/ids.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { RunFiles, RunPlace } from './run-files.ts';
import type { RunRecords } from './run-records.ts';
import { sweepAll } from './sweep-calls.ts';

export type MirrorOrder = { readonly run: BlobRef; readonly status: unknown; readonly checkpoints: unknown; readonly keepCalls: boolean };
export type MirrorDeps = { readonly records: RunRecords; readonly objects: ObjectStore; readonly folderOf: (run: RunPlace) => RunFiles };
export type MirrorActivities = ReturnType<typeof createMirrorActivities>;

export function createMirrorActivities({ records, objects, folderOf }: MirrorDeps) {
  return {
    /**
     * Writes the run's last state to `status.json`, what it saved on the service to `checkpoints.json`, and brings its folder here up to date
     * with what other workers wrote. The books of its calls go, unless trials were broken off: in theirs an attempt that still hangs somewhere
     * must find that its work was taken over.
     */
    async mirrorRun({ run, status, checkpoints, keepCalls }: MirrorOrder): Promise<void> {
      const record = await records.load(run);
      const files = folderOf(record);
      await files.writeJson('status.json', status);
      await files.writeJson('checkpoints.json', checkpoints);
      await files.mirror();
      if (!keepCalls) await sweepAll(objects, record.runId);
    },
  };
}
