import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunResult, RunStatus } from '../../workflows/messages.ts';
import { localServer, withWorkers, workflowBundle } from './environment.ts';
import { fakeActivities, pinned, trialOf } from './fake-activities.ts';

/** Few enough that a run of three small steps must go on in new executions, of its own and of its steps. */
const EVENTS_BEFORE_SUGGESTION = 70;

let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await localServer('--dynamic-config-value', `limit.historyCount.suggestContinueAsNew=${EVENTS_BEFORE_SUGGESTION}`);
});
afterAll(() => env?.teardown());

it('a run whose histories grow long goes on in new executions, runs each trial once and keeps its decisions; histories replay', async () => {
  const trials: string[] = [];
  const activities = fakeActivities({
    resolveRun: async ({ runId }) =>
      pinned({ runId, yes: false }, { steps: 6, tasksPerBatch: 2, groupSize: 8, interim: { every: 2, tasks: 2, k: 1 } }),
    runTrial: async (spec) => {
      trials.push(spec.trialId);
      return trialOf(spec);
    },
  });
  await withWorkers(env, activities, async (taskQueue) => {
    const workflowId = 'long-run';
    const handle = await env.client.workflow.start('distill', {
      taskQueue,
      workflowId,
      args: [{ agent: 'turn', config: 'run.toml', taskIds: ['a'], holdoutTaskIds: ['x'] }],
    });
    await expect.poll(async () => (await handle.query<RunStatus>('status')).waitingFor?.kind, { timeout: 20_000 }).toBe('cost');
    await handle.executeUpdate('confirmCost', { args: [{ by: 'tester' }] });
    const confirmedAtMs = Date.now();
    const result = (await handle.result()) as RunResult;
    const tookMs = Date.now() - confirmedAtMs;
    const latest = env.client.workflow.getHandle(workflowId);
    const status = await latest.query<RunStatus>('status');

    expect(result.outcome).toBe('accepted');
    expect(Object.values(status.wallMs).reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(0.8 * tookMs);
    expect(status.decisions).toMatchObject([{ message: 'confirmCost', by: 'tester' }]);
    expect(status.interim.map(({ label, model }) => `${label} ${model.version}`)).toEqual([
      'interim-0002 step-0002',
      'interim-0004 step-0004',
      'interim-0006 step-0006',
    ]);
    expect(trials.length).toBe(new Set(trials).size);
    expect(trials.filter((id) => id.includes('-s'))).toHaveLength(6 * 16);
    expect((await latest.describe()).runId).not.toBe(handle.firstExecutionRunId);
    const step = await env.client.workflow.getHandle('long-run.step-0001').fetchHistory();
    expect(step.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).toBeTruthy();
    for (const id of [workflowId, 'long-run.step-0002', 'long-run.eval-teacher']) {
      const history = await env.client.workflow.getHandle(id).fetchHistory();
      await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history, id);
    }
  });
}, 180_000);
