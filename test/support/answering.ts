import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import type { RunResult, RunStatus } from '../../workflows/messages.ts';

/** The result of a run with so few tasks that they may show no teacher who is better beyond noise: it then asks, and is told to go on. */
export async function resultOf(handle: WorkflowHandle): Promise<RunResult> {
  const ended = handle.result() as Promise<RunResult>;
  for (;;) {
    const result = await Promise.race([ended, sleep(300, null)]);
    if (result !== null) return result;
    await goOn(handle);
  }
}

/** Its status, once it is as wanted; a question on the way there is answered the same. */
export async function statusOnce(handle: WorkflowHandle, isSo: (status: RunStatus) => boolean): Promise<RunStatus> {
  for (;;) {
    const status = await goOn(handle);
    if (isSo(status)) return status;
    if (status.phase === 'ended') throw new Error(`the run ended (${status.outcome}) before it was as wanted`);
    await sleep(100);
  }
}

async function goOn(handle: WorkflowHandle): Promise<RunStatus> {
  const status = await handle.query<RunStatus>('status');
  if (status.waitingFor) await handle.executeUpdate('continueAnyway', { args: [{ by: 'a test' }] });
  return status;
}
