import type { Client } from '@temporalio/client';
import { payloadConverter } from '../../services/temporal/payload-converter.ts';

type History = Awaited<ReturnType<ReturnType<Client['workflow']['getHandle']>['fetchHistory']>>;
type HistoryEvent = NonNullable<History['events']>[number];
type Payloads = { readonly payloads?: readonly Parameters<typeof payloadConverter.fromPayload>[0][] | null } | null | undefined;

/** One activity of a run, as history has it: all attempts are one. */
export type ActivityRun = {
  /** Whose activity it is: the run's own id, or that of a step or an evaluation. */
  readonly workflowId: string;
  readonly type: string;
  readonly input: unknown;
  /** 0 when it was never started. */
  readonly attempts: number;
  readonly startedAtMs: number | null;
  readonly completedAtMs: number | null;
  /** Null before it completed. */
  readonly result: unknown;
};

export type ChildRun = { readonly workflowId: string; readonly startedAtMs: number };

/** Everything that history knows of a run, its steps and its evaluations. */
export type RunHistory = { readonly activities: readonly ActivityRun[]; readonly children: readonly ChildRun[] };

/** Reads the histories of a run and of all its children, over every execution that each went on in. */
export async function historyOf(client: Client, runId: string): Promise<RunHistory> {
  const own = await eventsOf(client, runId);
  const children = childrenIn(own);
  const activities = activitiesIn(runId, own);
  for (const workflowId of new Set(children.map((child) => child.workflowId)))
    activities.push(...activitiesIn(workflowId, await eventsOf(client, workflowId)));
  return { activities, children };
}

/** Executions of one id, the oldest first, each with its events. A child that was started again under its id is an execution, too. */
async function eventsOf(client: Client, workflowId: string): Promise<HistoryEvent[][]> {
  const found: { runId: string; startMs: number }[] = [];
  for await (const { runId, startTime } of client.workflow.list({ query: `WorkflowId = "${workflowId}"` }))
    found.push({ runId, startMs: startTime.getTime() });
  found.sort((a, b) => a.startMs - b.startMs);
  return Promise.all(
    found.map(async ({ runId }) => (await client.workflow.getHandle(workflowId, runId).fetchHistory()).events?.slice() ?? []),
  );
}

function activitiesIn(workflowId: string, executions: readonly (readonly HistoryEvent[])[]): ActivityRun[] {
  return executions.flatMap((events) => {
    const found = new Map<string, ActivityRun>();
    for (const event of events) {
      const scheduled = event.activityTaskScheduledEventAttributes;
      if (scheduled)
        found.set(String(event.eventId), {
          workflowId,
          type: scheduled.activityType?.name ?? '',
          input: valueIn(scheduled.input),
          attempts: 0,
          startedAtMs: null,
          completedAtMs: null,
          result: null,
        });
      const started = event.activityTaskStartedEventAttributes;
      amend(found, started?.scheduledEventId, { attempts: started?.attempt ?? 1, startedAtMs: atMs(event) });
      const completed = event.activityTaskCompletedEventAttributes;
      amend(found, completed?.scheduledEventId, { completedAtMs: atMs(event), result: valueIn(completed?.result) });
    }
    return [...found.values()];
  });
}

function amend(found: Map<string, ActivityRun>, scheduledEventId: unknown, change: Partial<ActivityRun>): void {
  const known = found.get(String(scheduledEventId));
  if (known) found.set(String(scheduledEventId), { ...known, ...change });
}

function childrenIn(executions: readonly (readonly HistoryEvent[])[]): ChildRun[] {
  return executions.flat().flatMap((event) => {
    const initiated = event.startChildWorkflowExecutionInitiatedEventAttributes;
    return initiated ? [{ workflowId: initiated.workflowId ?? '', startedAtMs: atMs(event) }] : [];
  });
}

function valueIn(payloads: Payloads): unknown {
  const [payload] = payloads?.payloads ?? [];
  return payload ? payloadConverter.fromPayload(payload) : null;
}

const atMs = ({ eventTime }: HistoryEvent) => Number(eventTime?.seconds ?? 0) * 1000 + Math.floor((eventTime?.nanos ?? 0) / 1e6);
