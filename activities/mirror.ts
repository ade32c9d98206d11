import type { BlobRef } from '../core/ids.ts';
import type { RunFiles, RunPlace } from './run-files.ts';
import type { RunRecords } from './run-records.ts';

export type MirrorDeps = { readonly records: RunRecords; readonly folderOf: (run: RunPlace) => RunFiles };
export type MirrorActivities = ReturnType<typeof createMirrorActivities>;

export function createMirrorActivities({ records, folderOf }: MirrorDeps) {
  return {
    /** Writes the run's last state to `status.json`, and brings its folder here up to date with what other workers wrote. */
    async mirrorRun({ run, status }: { run: BlobRef; status: unknown }): Promise<void> {
      const files = folderOf(await records.load(run));
      await files.writeJson('status.json', status);
      await files.mirror();
    },
  };
}
