import type { Client } from '@temporalio/client';

/** One `runTrial` activity of a child's history. */
export type TrialRecord = {
  readonly attempts: number;
  /** Why the attempt before the last one failed; null for the first. */
  readonly lastFailure: string | null;
  readonly completedAtMs: number | null;
};

/** The trials of one child workflow (a step or an evaluation), as its history has them. */
export async function trialsOf(client: Client, workflowId: string): Promise<TrialRecord[]> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const trials = new Map<string, { attempts: number; lastFailure: string | null; completedAtMs: number | null }>();
  for (const event of events ?? []) {
    if (event.activityTaskScheduledEventAttributes?.activityType?.name === 'runTrial')
      trials.set(String(event.eventId), { attempts: 0, lastFailure: null, completedAtMs: null });
    const started = event.activityTaskStartedEventAttributes;
    const ran = trials.get(String(started?.scheduledEventId));
    if (ran) Object.assign(ran, { attempts: started?.attempt ?? 1, lastFailure: started?.lastFailure?.message ?? null });
    const completed = trials.get(String(event.activityTaskCompletedEventAttributes?.scheduledEventId));
    if (completed) completed.completedAtMs = Number(event.eventTime?.seconds ?? 0) * 1000 + Math.floor((event.eventTime?.nanos ?? 0) / 1e6);
  }
  return [...trials.values()];
}
