import type { BlobRef } from '../core/ids.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { RunFolder } from './run-folder.ts';
import type { RunRecords } from './run-records.ts';
import { sweepAll } from './sweep-calls.ts';

export type MirrorDeps = { readonly records: RunRecords; readonly objects: ObjectStore; readonly folderOf: (runDir: string) => RunFolder };
export type MirrorActivities = ReturnType<typeof createMirrorActivities>;

export function createMirrorActivities({ records, objects, folderOf }: MirrorDeps) {
  return {
    /** Writes the run's last state to `status.json` in its folder. The books of its calls go, unless trials were cut off: those have not been booked. */
    async mirrorRun({ run, status, keepCalls }: { run: BlobRef; status: unknown; keepCalls: boolean }): Promise<void> {
      const { runDir, runId } = await records.load(run);
      await folderOf(runDir).writeJson('status.json', status);
      if (!keepCalls) await sweepAll(objects, runId);
    },
  };
}
