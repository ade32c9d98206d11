import { InputProblem } from './input-files.ts';
import type { RunFolder } from './run-folder.ts';
import type { RunRecord } from './run-records.ts';

/**
 * Takes the run's folder for this execution. A folder that another execution took means that the run id was used before,
 * which holds also when the server has forgotten that run.
 */
export async function claimRunId(folder: RunFolder, record: RunRecord): Promise<void> {
  const claim = `${JSON.stringify(record, null, 2)}\n`;
  const held = await folder.claim('run.json', claim);
  if (held === claim) return;
  if (executionIn(held) !== record.executionId)
    throw new InputProblem('run id', `${record.runId} was used before (${folder.path} holds it): start the run under another id`);
}

function executionIn(text: string): string | null {
  try {
    return (JSON.parse(text) as { executionId?: string }).executionId ?? null;
  } catch {
    return null;
  }
}
