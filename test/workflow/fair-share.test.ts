import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { expect, it } from 'vitest';
import { DEV_SERVER_TUNING } from '../../services/processes/index.ts';
import { localServer, withWorkers } from './environment.ts';
import { listed, pinned, tasksIn, trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { INPUT, serverOfFile } from './runs.ts';

const env = serverOfFile(() => localServer(...DEV_SERVER_TUNING));

const LONG = { runId: 'long-run', trials: 200 };
const SHORT = { runId: 'short-run', trials: 10 };
const TRIAL_MS = 200;

/** Trials of both runs' steps, by run, in the order in which they started. */
const started: string[] = [];
const ofRun = (runId: string) => started.filter((id) => id === runId).length;

const sizeOf = (runId: string) => (runId === LONG.runId ? LONG : SHORT).trials;
const tasksOf = (runId: string) => listed(...Array.from({ length: sizeOf(runId) }, (_, index) => `task-${index}`));

const activities: AllActivities = fakeActivities({
  resolveRun: async ({ runId }) =>
    pinned(
      { runId, trialPrefix: runId, ref: runId as never },
      { steps: 1, tasksPerBatch: sizeOf(runId), groupSize: 1, trialConcurrency: 200 },
    ),
  drawStepTasks: async ({ run }) => tasksIn(tasksOf(run)),
  runTrial: async (spec) => {
    if (spec.trialId.includes('-s0001')) started.push(spec.run);
    await sleep(TRIAL_MS);
    return trialFor(spec);
  },
});

type Event = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number];
const priorityOf = (event: Event) =>
  event.activityTaskScheduledEventAttributes?.priority ?? event.startChildWorkflowExecutionInitiatedEventAttributes?.priority;

it('a run that comes later takes turns with one that has queued all its trials before', async () => {
  await withWorkers(
    env(),
    activities,
    async (taskQueue) => {
      const start = ({ runId: workflowId }: typeof LONG) =>
        env().client.workflow.start('distill', { taskQueue, workflowId, args: [INPUT] });
      const long = await start(LONG);
      await expect.poll(() => ofRun(LONG.runId), { timeout: 30_000 }).toBeGreaterThan(10);
      const short = await start(SHORT);
      await expect.poll(() => ofRun(SHORT.runId), { timeout: 60_000 }).toBe(SHORT.trials);
      expect(ofRun(LONG.runId)).toBeLessThan(LONG.trials * 0.75);
      await short.result();
      await long.terminate();

      const histories = [await short.fetchHistory(), await env().client.workflow.getHandle(`${SHORT.runId}.step-0001`).fetchHistory()];
      const scheduled = histories.flatMap(({ events }) =>
        (events ?? []).filter(
          (event) => event.activityTaskScheduledEventAttributes || event.startChildWorkflowExecutionInitiatedEventAttributes,
        ),
      );
      expect(new Set(scheduled.map((event) => priorityOf(event)?.fairnessKey))).toEqual(new Set([SHORT.runId]));
      const brief = scheduled.find((event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'tallySpend');
      expect(brief && priorityOf(brief)?.priorityKey).toBe(2);
    },
    { rolloutSlots: 2 },
  );
}, 120_000);
