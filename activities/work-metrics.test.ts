import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { expect, it } from 'vitest';
import { workMetrics } from './work-metrics.ts';

type Activity = Parameters<ActivityInterceptorsFactory>[0];

/** What the worker's meters counted while one activity brought this. */
async function counted(activityType: string, result: unknown): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const counter = (name: string) => ({
    add: (count: number, tags: object = {}) => {
      const key = [name, ...Object.values(tags)].join(' ');
      counts[key] = (counts[key] ?? 0) + count;
    },
  });
  const metricMeter = { createCounter: counter, createUpDownCounter: counter };
  const { inbound } = workMetrics({ info: { activityType }, metricMeter } as unknown as Activity);
  await inbound?.execute?.({ args: [], headers: {} }, async () => result);
  return counts;
}

const usage = { meters: { student_train: 5 }, sent: {}, lost: [] };

it.each([
  ['trainBatch', usage, { 'stillroom_tokens student_train': 5 }],
  ['saveState', { ...usage, path: 'p' }, { 'stillroom_tokens student_train': 5 }],
  ['checkModels', { checks: [], usage }, { 'stillroom_tokens student_train': 5 }],
  ['closeStep', usage, {}], // passed on
  ['scoreEpisode', null, {}],
])('%s', async (activityType, result, counts) => expect(await counted(activityType, result)).toEqual(counts));

it('a trial counts by how it ended, and not among those that run any more', async () => {
  expect(await counted('runTrial', { meters: {}, executed: true, passed: false })).toEqual({
    'stillroom_trials failed': 1,
    stillroom_trials_running: 0,
  });
});
