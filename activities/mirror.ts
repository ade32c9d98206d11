import type { BlobRef } from '../core/ids.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { RunFiles, RunPlace } from './run-files.ts';
import type { RunRecords } from './run-records.ts';
import { sweepAll } from './sweep-calls.ts';

export type MirrorDeps = { readonly records: RunRecords; readonly objects: ObjectStore; readonly folderOf: (run: RunPlace) => RunFiles };
export type MirrorActivities = ReturnType<typeof createMirrorActivities>;

export function createMirrorActivities({ records, objects, folderOf }: MirrorDeps) {
  return {
    /**
     * Writes the run's last state to `status.json`, and brings its folder here up to date with what other workers wrote. The books of
     * its calls go, unless trials were cut off: those have not been booked.
     */
    async mirrorRun({ run, status, keepCalls }: { run: BlobRef; status: unknown; keepCalls: boolean }): Promise<void> {
      const record = await records.load(run);
      const files = folderOf(record);
      await files.writeJson('status.json', status);
      await files.mirror();
      if (!keepCalls) await sweepAll(objects, record.runId);
    },
  };
}
