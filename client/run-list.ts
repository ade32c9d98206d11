import { SEARCH_ATTRIBUTES } from '../workflows/search-attributes.ts';
import type { Link } from './connection.ts';
import { NoServer } from './errors.ts';
import { grpcCodeOf, UNAVAILABLE } from './grpc.ts';

/** A run as the server's list knows it; no worker is asked. A failed run keeps the phase it failed in. */
export type ListedRun = {
  readonly runId: string;
  readonly state: string;
  readonly phase: string | null;
  readonly waitingFor: string | null;
  readonly step: number | null;
  readonly solveRate: number | null;
  readonly spentUsd: number | null;
  readonly startedAt: string;
  readonly closedAt: string | null;
};

/** The newest runs, at most `limit`. Executions that went on in a new one are shown once, as that. */
export async function readRuns(link: Link, limit: number): Promise<ListedRun[]> {
  const runs: ListedRun[] = [];
  const query = "WorkflowType = 'distill' AND ExecutionStatus != 'ContinuedAsNew'";
  try {
    for await (const found of link.client.workflow.list({ query })) {
      const { typedSearchAttributes: facts } = found;
      const waitingFor = facts.get(SEARCH_ATTRIBUTES.waitingFor) ?? null;
      runs.push({
        runId: found.workflowId,
        state: found.status.name.toLowerCase().replaceAll('_', ' '),
        phase: facts.get(SEARCH_ATTRIBUTES.phase) ?? null,
        waitingFor: waitingFor === 'nothing' ? null : waitingFor,
        step: facts.get(SEARCH_ATTRIBUTES.step) ?? null,
        solveRate: facts.get(SEARCH_ATTRIBUTES.solveRate) ?? null,
        spentUsd: facts.get(SEARCH_ATTRIBUTES.spentUsd) ?? null,
        startedAt: found.startTime.toISOString(),
        closedAt: found.closeTime?.toISOString() ?? null,
      });
      if (runs.length === limit) break;
    }
  } catch (error) {
    throw grpcCodeOf(error) === UNAVAILABLE ? new NoServer(link.address) : error;
  }
  return runs;
}
