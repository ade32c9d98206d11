import type { ObjectKey, ObjectStore } from './object-store.ts';

/** Everything that a run keeps is below `runs/<run>/`. */
export const RUNS = 'runs/';
export const placeOf = (runId: string): string => `${RUNS}${runId}/`;

/** Says that the run's id was used. */
export const claimKey = (runId: string): ObjectKey => `${placeOf(runId)}claim`;

/** Below it are the files of the run's folder, as every worker can have them. */
export const filesOf = (runId: string): string => `${placeOf(runId)}files/`;

/** Notes that a run reads what other runs keep: those are not collected while it exists. */
export async function noteReads(objects: ObjectStore, runId: string, others: Iterable<string>): Promise<void> {
  for (const other of others) if (other !== runId) await objects.create(`${placeOf(runId)}${READS}${other}`, new Uint8Array());
}

/** Where a run notes them, below its own place. */
export const READS = 'reads/';

/** Below it stands, by the trial's id, which blob holds what a trial left in its folder. */
export const trialFilesOf = (runId: string): string => `${placeOf(runId)}trial-files/`;
