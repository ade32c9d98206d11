import { Context } from '@temporalio/activity';
import { describe, expect, it } from 'vitest';
import { setBudgetUpdate, stopUpdate } from '../../workflows/messages.ts';
import { localServer, timeSkippingServer } from './environment.ts';
import type { AllActivities } from './fake-activities.ts';
import { ask, resolvedAs, serverOfFile, startIn, trialsUntilCancelled, waitsFor } from './runs.ts';

describe('while a run trains', () => {
  const env = serverOfFile(localServer);

  it('its training is kept alive, and is let go when it ends', async () => {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let closed = 0;
    const keepTraining: AllActivities['keepTraining'] = async () => {
      begun.resolve();
      const context = Context.current();
      const beat = setInterval(() => context.heartbeat(), 100);
      await context.cancelled.finally(() => {
        clearInterval(beat);
        ended.resolve();
      });
    };
    const closeTraining: AllActivities['closeTraining'] = async () => void closed++;
    const trialStarted = Promise.withResolvers<void>();
    const activities = { keepTraining, closeTraining, runTrial: trialsUntilCancelled('-s0001', trialStarted.resolve) };
    await startIn(env)(activities, async (handle) => {
      await begun.promise;
      await trialStarted.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped' });
      await ended.promise;
    });
    expect(closed).toBe(1);
  });
});

describe('while a run waits for a person', () => {
  const env = serverOfFile(timeSkippingServer);

  it.each([
    ['10 minutes', 1],
    ['3 days', 2],
  ] as const)('for %s, in the middle of training', async (wait, kept) => {
    let calls = 0;
    const keepTraining: AllActivities['keepTraining'] = async () => void calls++;
    const resolveRun = resolvedAs({}, { maxUsd: 0.2, steps: 3 });
    await startIn(env)({ keepTraining, resolveRun }, async (handle) => {
      await waitsFor(handle, 'budget');
      expect(calls).toBe(1);
      await env().sleep(wait);
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
    expect(calls).toBe(kept);
  });
});
