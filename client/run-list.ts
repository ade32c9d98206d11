import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
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

const PHASE = defineSearchAttributeKey('StillroomPhase', SearchAttributeType.KEYWORD);
const WAITING_FOR = defineSearchAttributeKey('StillroomWaitingFor', SearchAttributeType.KEYWORD);
const STEP = defineSearchAttributeKey('StillroomStep', SearchAttributeType.INT);
const SOLVE_RATE = defineSearchAttributeKey('StillroomSolveRate', SearchAttributeType.DOUBLE);
const SPENT_USD = defineSearchAttributeKey('StillroomSpentUsd', SearchAttributeType.DOUBLE);

/** The newest runs, at most `limit`. Executions that went on in a new one are shown once, as that. */
export async function readRuns(link: Link, limit: number): Promise<ListedRun[]> {
  const runs: ListedRun[] = [];
  const query = "WorkflowType = 'distill' AND ExecutionStatus != 'ContinuedAsNew'";
  try {
    for await (const found of link.client.workflow.list({ query })) {
      const { typedSearchAttributes: facts } = found;
      const waitingFor = facts.get(WAITING_FOR) ?? null;
      runs.push({
        runId: found.workflowId,
        state: found.status.name.toLowerCase().replaceAll('_', ' '),
        phase: facts.get(PHASE) ?? null,
        waitingFor: waitingFor === 'nothing' ? null : waitingFor,
        step: facts.get(STEP) ?? null,
        solveRate: facts.get(SOLVE_RATE) ?? null,
        spentUsd: facts.get(SPENT_USD) ?? null,
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
