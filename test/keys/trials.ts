import type { Client } from '@temporalio/client';
import type { TrialSpec, TrialSummary } from '../../core/run/trial.ts';

/** A trial as the history of its step or evaluation has it: what was asked, and what came of it. */
export type PlayedTrial = { readonly spec: TrialSpec; readonly summary: TrialSummary };

export type Played = {
  /** In the order in which they ended. */
  readonly trials: readonly PlayedTrial[];
  readonly mostAtOnce: number;
};

type Payloads = { readonly payloads?: readonly { readonly data?: Uint8Array | null }[] | null };

/** The trials of one child workflow of a run: `<run>.step-0001`, `<run>.eval-teacher`. */
export async function playedTrials(client: Client, workflowId: string): Promise<Played> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const running = new Map<string, TrialSpec>();
  const trials: PlayedTrial[] = [];
  let mostAtOnce = 0;
  for (const event of events ?? []) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled?.activityType?.name === 'runTrial') running.set(String(event.eventId), first<TrialSpec>(scheduled.input));
    mostAtOnce = Math.max(mostAtOnce, running.size);
    const completed = event.activityTaskCompletedEventAttributes;
    const spec = running.get(String(completed?.scheduledEventId));
    if (spec === undefined || !completed) continue;
    running.delete(String(completed.scheduledEventId));
    trials.push({ spec, summary: first<TrialSummary>(completed.result) });
  }
  return { trials, mostAtOnce };
}

function first<T>(payloads: Payloads | null | undefined): T {
  return JSON.parse(Buffer.from(payloads?.payloads?.[0]?.data ?? []).toString()) as T;
}
