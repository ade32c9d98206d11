import type { ObjectStore } from '../services/blobs/object-store.ts';
import { claimKey, filesOf } from '../services/blobs/run-keys.ts';
import { asInputProblem, InputProblem } from './input-problem.ts';
import { jsonText, type RunFolder } from './run-folder.ts';
import type { RunRecord } from './run-records.ts';

const FILE = 'run.json';

/**
 * Where a run is claimed: `objects` decides over its id for all workers; `home` is the id's own folder below the run root, `folder` the
 * one the run asked for, often the same.
 */
export type RunPlaces = { readonly objects: ObjectStore; readonly home: RunFolder; readonly folder: RunFolder };

/**
 * Takes a run's id and folder for this execution. What another execution took was used before, which holds also when the server
 * has forgotten that run. The same execution may come again: the claim in the folder then says what it pinned last.
 * @throws InputProblem, before anything is written unless another execution takes the same at this moment
 */
export async function claimRun({ objects, home, folder }: RunPlaces, record: RunRecord): Promise<void> {
  const { runId, executionId, runDir } = record;
  try {
    refuseOthers(await claimOf(objects, runId), executionId, 'run id', usedBefore(runId));
    refuseOthers(await home.read(FILE), executionId, 'run id', usedBefore(runId));
    const takenBy = await folder.read(FILE);
    const taken = `${runDir} belongs to ${takenBy === null ? 'another run' : describe(takenBy)}: name another folder`;
    refuseOthers(takenBy, executionId, 'runDir', taken);
    if (takenBy === null && (await folder.names()).length > 0)
      throw new InputProblem('runDir', `${runDir} holds other files already: name a new folder`);
    await takeId(objects, record);
    await take(folder, jsonText(record), record);
    await objects.put(`${filesOf(runId)}${FILE}`, new TextEncoder().encode(jsonText(record)));
    if (home.path !== folder.path) await take(home, jsonText({ runId, executionId, runDir }), record);
  } catch (error) {
    throw asInputProblem(error, 'runDir', runDir);
  }
}

/** Of all executions on all workers one makes the claim; it stays when everything else of the run is collected. */
async function takeId(objects: ObjectStore, { runId, executionId, runDir }: RunRecord): Promise<void> {
  const claim = new TextEncoder().encode(jsonText({ runId, executionId, runDir }));
  if (await objects.create(claimKey(runId), claim)) return;
  refuseOthers(await claimOf(objects, runId), executionId, 'run id', usedBefore(runId));
}

async function claimOf(objects: ObjectStore, runId: string): Promise<string | null> {
  const held = await objects.get(claimKey(runId));
  return held === null ? null : new TextDecoder().decode(held);
}

const usedBefore = (runId: string) => `${runId} was used before: start the run under another id`;

async function take(folder: RunFolder, claim: string, { runId, executionId }: RunRecord): Promise<void> {
  const held = await folder.claim(FILE, claim);
  refuseOthers(held, executionId, 'run id', `${runId} was taken by another execution just now: start the run under another id`);
  if (held !== claim) await folder.write(FILE, claim);
}

function refuseOthers(held: string | null, executionId: string, field: string, why: string): void {
  if (held !== null && claimIn(held).executionId !== executionId) throw new InputProblem(field, why);
}

function describe(held: string): string {
  const { runId } = claimIn(held);
  return runId === undefined ? 'another run' : `run ${runId}`;
}

/** A claim that cannot be read is somebody's all the same. */
function claimIn(text: string): { readonly runId?: string; readonly executionId?: string } {
  try {
    return (JSON.parse(text) as { runId?: string; executionId?: string } | null) ?? {};
  } catch {
    return {};
  }
}
