import { expect, it } from 'vitest';
import type { RunStatus } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { listed, trialFor } from './facts.ts';
import type { AllActivities } from './fake-activities.ts';
import { ask, replay, resolvedAs, serverOfFile, startIn, waitsFor } from './runs.ts';

/** Few enough that a run of three small steps must go on in new executions, of its own and of its steps. */
const EVENTS_BEFORE_SUGGESTION = 70;

/** So many that each evaluation of them must go on too. */
const HELD_OUT = Array.from({ length: 20 }, (_, index) => `held-out-${index}`);

const env = serverOfFile(() =>
  localServer('--dynamic-config-value', `limit.historyCount.suggestContinueAsNew=${EVENTS_BEFORE_SUGGESTION}`),
);
const run = startIn(env);

it('a run whose histories grow long goes on in new executions, runs each trial once and keeps its decisions; histories replay', async () => {
  const trials: string[] = [];
  const plan = { steps: 6, tasksPerBatch: 2, groupSize: 8, interim: { every: 2, tasks: 2, k: 1 } };
  const activities: Partial<AllActivities> = {
    resolveRun: resolvedAs({ yes: false, holdout: listed(...HELD_OUT) }, plan),
    runTrial: async (spec) => {
      trials.push(spec.trialId);
      return trialFor(spec);
    },
  };
  await run(activities, async (handle) => {
    const { workflowId } = handle;
    await waitsFor(handle, 'cost');
    await handle.executeUpdate('confirmCost', { args: [ask] });
    const confirmedAtMs = Date.now();
    const result = await handle.result();
    const tookMs = Date.now() - confirmedAtMs;
    const latest = env().client.workflow.getHandle(workflowId);
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
    const children = ['step-0001', 'step-0006', 'eval-teacher', 'eval-student-after'].map((part) => `${workflowId}.${part}`);
    for (const child of children) {
      const { events } = await env().client.workflow.getHandle(child).fetchHistory();
      const { continuedExecutionRunId } = events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
      expect(continuedExecutionRunId, child).toBeTruthy();
    }
    expect(result.evaluations.map(({ label, trials }) => `${label} ${trials}`)).toEqual([
      `teacher ${HELD_OUT.length}`,
      `student-before ${HELD_OUT.length}`,
      `student-after ${HELD_OUT.length}`,
    ]);
    await replay(env(), workflowId, ...children);
  });
}, 240_000);
