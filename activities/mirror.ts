import type { BlobRef } from '../core/ids.ts';
import type { RunFolder } from './run-folder.ts';
import type { RunRecords } from './run-records.ts';

export type MirrorDeps = { readonly records: RunRecords; readonly folderOf: (runDir: string) => RunFolder };
export type MirrorActivities = ReturnType<typeof createMirrorActivities>;

export function createMirrorActivities({ records, folderOf }: MirrorDeps) {
  return {
    /** Writes the run's last state to `status.json` in its folder. */
    async mirrorRun({ run, status }: { run: BlobRef; status: unknown }): Promise<void> {
      const { runDir } = await records.load(run);
      await folderOf(runDir).writeJson('status.json', status);
    },
  };
}
