import { WorkflowNotFoundError } from '@temporalio/client';
import pLimit from 'p-limit';
import { type KeptRun, keptRuns, type RunState } from '../services/blobs/gc.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { Link } from './connection.ts';
import { NoServer } from './errors.ts';
import { grpcCodeOf, UNAVAILABLE } from './grpc.ts';

/** Questions to the server at once. */
const ASKERS = 8;

export type RunsInStore = { readonly runs: readonly KeptRun[]; readonly stateOf: (runId: string) => RunState };

/** What the store keeps by run, and what the server says of each. */
export async function readStore(objects: ObjectStore, link: Link): Promise<RunsInStore> {
  const runs = await keptRuns(objects);
  const states = new Map(await pLimit(ASKERS).map(runs, async ({ runId }) => [runId, await stateOf(link, runId)] as const));
  return { runs, stateOf: (runId) => states.get(runId) ?? 'unknown' };
}

/** A run that ended counts as running until the last of its steps and evaluations has. */
async function stateOf({ client, address }: Link, runId: string): Promise<RunState> {
  try {
    const { closeTime } = await client.workflow.getHandle(runId).describe();
    if (closeTime === undefined) return 'running';
    const { count } = await client.workflow.count(`ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '${runId}.'`);
    return count > 0 ? 'running' : 'ended';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'unknown';
    throw grpcCodeOf(error) === UNAVAILABLE ? new NoServer(address) : error;
  }
}
