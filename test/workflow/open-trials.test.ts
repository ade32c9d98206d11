import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { expect, it } from 'vitest';
import { MOST_TRIALS_OPEN } from '../../core/run/batch-sizes.ts';
import { MOST_STARTED_AT_ONCE } from '../../workflows/trial-pool.ts';
import { localServer } from './environment.ts';
import { listed, tasksIn, trialFor } from './facts.ts';
import type { AllActivities } from './fake-activities.ts';
import { resolvedAs, serverOfFile, startIn } from './runs.ts';

const env = serverOfFile(() => localServer());
const run = startIn(env);

it('a trial_concurrency of 1,000 opens no more trials than a workflow can well have', async () => {
  const tasks = listed(...Array.from({ length: 320 }, (_, index) => `task-${index}`));
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const activities: Partial<AllActivities> = {
    resolveRun: resolvedAs({}, { steps: 1, tasksPerBatch: tasks.count, groupSize: 1, trialConcurrency: 1000 }),
    drawStepTasks: async () => tasksIn(tasks),
    runTrial: async (spec) => {
      if (spec.trialId.includes('-s0001')) {
        const beat = setInterval(() => Context.current().heartbeat(), 500);
        await released.finally(() => clearInterval(beat));
      }
      return trialFor(spec);
    },
  };
  await run(activities, async (handle) => {
    const step = env().client.workflow.getHandle(`${handle.workflowId}.step-0001`);
    const open = async () => (await step.describe().catch(() => null))?.raw.pendingActivities?.length ?? 0;
    await expect.poll(open, { timeout: 40_000 }).toBe(MOST_TRIALS_OPEN);
    await sleep(500);
    expect(await open()).toBe(MOST_TRIALS_OPEN);
    const { events } = await step.fetchHistory();
    const startedBy = Map.groupBy(
      (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) => scheduled ?? []),
      ({ workflowTaskCompletedEventId }) => String(workflowTaskCompletedEventId),
    );
    expect(Math.max(...[...startedBy.values()].map(({ length }) => length))).toBe(MOST_STARTED_AT_ONCE);
    await handle.terminate();
    await step.terminate();
    release();
  });
}, 120_000);
