import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { StartInput } from '../core/run/start-input.ts';
import { COMMAND } from './command-name.ts';
import type { Link } from './connection.ts';
import { CliError, NoServer } from './errors.ts';
import { grpcCodeOf, UNAVAILABLE } from './grpc.ts';

/** What a new run is called in Temporal, and where its work is queued. */
export type RunName = { readonly runId: string; readonly taskQueue: string; readonly summary: string };

/** Starts a run. @throws CliError when the id was used before, whether that run is open or ended. */
export async function startRun(link: Link, input: StartInput, { runId, taskQueue, summary }: RunName): Promise<void> {
  try {
    await link.client.workflow.start('distill', {
      args: [input],
      workflowId: runId,
      taskQueue,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: 'FAIL',
      staticSummary: summary,
    });
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError)
      throw new CliError(`run id "${runId}" was used before; choose another --id, or see that run with \`${COMMAND} watch ${runId}\``);
    throw grpcCodeOf(error) === UNAVAILABLE ? new NoServer(link.address) : error;
  }
}
