import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { type History, historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { PROJECT_ROOT } from '../../services/settings/index.ts';

/** One execution of a workflow; a workflow that continued as new has several under one id. */
export type Execution = { readonly type: string; readonly history: unknown };

/** Event types, by their number in the protocol (temporal.api.enums.v1.EventType), after which the workflow code has yet to run. */
const TASK_SCHEDULED = 5;
const TASK_STARTED = 6;

/** All executions of a workflow id, the first one first, as they are when no workflow task is under way. */
export async function executionsOf(client: Client, workflowId: string): Promise<Execution[]> {
  const { firstRunId } = await firstOf(client, workflowId);
  const executions: Execution[] = [];
  for (let runId: string | undefined = firstRunId; runId; ) {
    const history = await atRest(client, workflowId, runId);
    executions.push(readable(history));
    runId = history.events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? undefined;
  }
  return executions;
}

async function firstOf(client: Client, workflowId: string): Promise<{ firstRunId: string }> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const firstRunId = events?.[0]?.workflowExecutionStartedEventAttributes?.firstExecutionRunId;
  if (!firstRunId) throw new Error(`${workflowId} has no history`);
  return { firstRunId };
}

async function atRest(client: Client, workflowId: string, runId: string): Promise<History> {
  for (;;) {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    const last = history.events?.at(-1)?.eventType;
    if (last !== TASK_SCHEDULED && last !== TASK_STARTED) return history;
    await sleep(50);
  }
}

/** As JSON, and without what is of the machine that recorded it. */
function readable(history: History): Execution {
  const type = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowType?.name;
  if (!type) throw new Error('a history begins with the start of its workflow');
  const withoutTraces = JSON.stringify(JSON.parse(historyToJSON(history)), (key, value: unknown) =>
    key === 'stackTrace' ? undefined : value,
  );
  const text = withoutTraces.replaceAll(`${process.pid}@${hostname()}`, 'recorder');
  for (const trace of [PROJECT_ROOT, `@${hostname()}`])
    if (text.includes(trace)) throw new Error(`the history of a ${type} contains ${trace}`);
  return { type, history: JSON.parse(text) };
}
