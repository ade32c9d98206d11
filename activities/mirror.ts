import type { BlobRef } from '../core/ids.ts';
import type { RunFolder } from './run-folder.ts';
import type { RunRecords } from './run-records.ts';

export type MirrorDeps = { readonly records: RunRecords; readonly folderOf: (runDir: string) => RunFolder };
export type MirrorActivities = ReturnType<typeof createMirrorActivities>;

export function createMirrorActivities({ records, folderOf }: MirrorDeps) {
  return {
    /** Writes the run's last state to `status.json` in its folder, and what it saved on the service to `checkpoints.json`. */
    async mirrorRun({ run, status, checkpoints }: { run: BlobRef; status: unknown; checkpoints: unknown }): Promise<void> {
      const { runDir } = await records.load(run);
      await folderOf(runDir).writeJson('status.json', status);
      await folderOf(runDir).writeJson('checkpoints.json', checkpoints);
    },
  };
}
