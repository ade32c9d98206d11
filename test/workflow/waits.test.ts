import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type { Estimate } from '../../core/run/results.ts';
import {
  confirmCostUpdate,
  decidePromotionUpdate,
  pauseUpdate,
  resumeUpdate,
  setBudgetUpdate,
  statusQuery,
  stopUpdate,
} from '../../workflows/messages.ts';
import { localServer, withWorkers } from './environment.ts';
import { ESTIMATE, evidence, pinned } from './facts.ts';
import { fakeActivities } from './fake-activities.ts';
import { ask, INPUT, notingIn, serverOfFile, startIn, trialsUntilCancelled, waitsFor } from './runs.ts';

const env = serverOfFile(localServer);
const run = startIn(env);

describe('waits', () => {
  it('asks for the cost, is confirmed once, and tells a second answer who decided', async () => {
    await run({ resolveRun: async () => pinned({ yes: false }) }, async (handle) => {
      await waitsFor(handle, 'cost');
      await expect(handle.executeUpdate(confirmCostUpdate, { args: [{ by: '' }] })).rejects.toMatchObject({
        cause: { message: /say who decides/ },
      });
      const { waitingFor } = await handle.query(statusQuery);
      await handle.executeUpdate(confirmCostUpdate, { args: [{ ...ask, waitId: waitingFor?.id, via: 'cli' }] });
      await expect(handle.executeUpdate(confirmCostUpdate, { args: [{ by: 'late' }] })).rejects.toMatchObject({
        cause: { message: /confirmCost by tester through cli/ },
      });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });

  it('yes does not skip the question while a price is unknown and there is no cap', async () => {
    const unpriced: Estimate = { ...ESTIMATE, pricedUsd: 0, unpricedMeters: ['teacher_prefill'], fullyPriced: false };
    await run({ estimateRun: async () => unpriced }, async (handle) => {
      await waitsFor(handle, 'cost');
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped' });
    });
  });

  it('promotes only after a person agrees; a signal in the wrong state is recorded and not applied', async () => {
    let promoted = 0;
    const promoteAdapter = async () => ({ keyVariable: `K${++promoted}` });
    await run({ resolveRun: async () => pinned({ promote: true }), promoteAdapter }, async (handle) => {
      await handle.signal('decidePromotion', { by: 'eager', approve: true });
      await waitsFor(handle, 'promotion');
      expect(promoted).toBe(0);
      expect((await handle.query(statusQuery)).decisions).toMatchObject([
        { by: 'eager', applied: false, refusal: expect.stringMatching(/does not ask/) },
      ]);
      await handle.signal('promote', { ...ask, approve: true });
      expect(await handle.result()).toMatchObject({ outcome: 'promoted' });
      expect(promoted).toBe(1);
    });
  });

  it('a message that is there before the run has begun is judged like any other', async () => {
    await withWorkers(env(), fakeActivities({ resolveRun: async () => pinned({ promote: true }) }), async (taskQueue) => {
      const handle = await env().client.workflow.signalWithStart('distill', {
        taskQueue,
        workflowId: `run-${randomUUID()}`,
        args: [INPUT],
        signal: 'decidePromotion',
        signalArgs: [{ by: 'eager', approve: true }],
      });
      await waitsFor(handle, 'promotion');
      expect((await handle.query(statusQuery)).decisions).toMatchObject([{ by: 'eager', applied: false }]);
      await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: false }] });
      expect(await handle.result()).toMatchObject({ outcome: 'promotion declined' });
    });
  });

  it('a flood of large messages leaves a run that can be read and ends', async () => {
    await run({ resolveRun: async () => pinned({ promote: true }) }, async (handle) => {
      const long = 'x'.repeat(20_000);
      for (let sent = 0; sent < 60; sent++) await handle.signal('setBudget', { by: long, reason: long, via: long, maxUsd: -sent });
      await waitsFor(handle, 'promotion');
      const tooLong = handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: true, reason: long }] });
      await expect(tooLong).rejects.toMatchObject({ cause: { message: expect.stringMatching(/reason/) } });
      await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: true }] });
      expect(await handle.result()).toMatchObject({ outcome: 'promoted' });
      const { decisions } = await handle.query(statusQuery);
      expect(decisions.map(({ answer }) => answer)).toEqual([...Array.from({ length: 50 }, (_, kept) => -kept - 10), true]);
      expect(JSON.stringify(decisions).length).toBeLessThan(500_000);
    });
  });

  it('settings that cannot be written leave the adapter and say what to do by hand', async () => {
    const promoteAdapter = async (): Promise<never> => {
      throw ApplicationFailure.nonRetryable('settings.toml is not valid TOML', 'SettingsUnusable');
    };
    await run({ resolveRun: async () => pinned({ promote: true }), promoteAdapter }, async (handle) => {
      await waitsFor(handle, 'promotion');
      const withNote = { ...ask, approve: true, maxUsd: 5 }; // a key of another message says nothing here
      await handle.executeUpdate(decidePromotionUpdate, { args: [withNote] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted', adapter: { version: 1 } });
      expect((await handle.query(statusQuery)).notices.at(-1)).toMatch(/not promoted: settings.toml is not valid TOML/);
    });
  });

  it('a refused promotion leaves the adapter and promotes nothing', async () => {
    const promoteAdapter = async (): Promise<never> => {
      throw new Error('promoted against a no');
    };
    await run({ resolveRun: async () => pinned({ promote: true }), promoteAdapter }, async (handle) => {
      await waitsFor(handle, 'promotion');
      await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: false }] });
      expect(await handle.result()).toMatchObject({ outcome: 'promotion declined', adapter: { version: 1 } });
    });
  });

  it('waits at the cap, refuses a cap below what is spent, and goes on after a raise', async () => {
    await run({ resolveRun: async () => pinned({}, { maxUsd: 0.2 }) }, async (handle) => {
      await waitsFor(handle, 'budget');
      const { step, spend } = await handle.query(statusQuery);
      expect(step).toBe(1);
      await expect(handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: spend.usd / 2 }] })).rejects.toMatchObject({
        cause: { message: /above what is spent/ },
      });
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted', spend: { maxUsd: 10 } });
    });
  });

  it('pauses between pieces of work and resumes', async () => {
    await run({ resolveRun: async () => pinned({ yes: false }) }, async (handle) => {
      await waitsFor(handle, 'cost');
      await handle.executeUpdate(pauseUpdate, { args: [ask] });
      await handle.executeUpdate(confirmCostUpdate, { args: [ask] });
      await waitsFor(handle, 'pause');
      await handle.executeUpdate(resumeUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });

  it('a teacher no better than the student waits for a person', async () => {
    await run({ compareTeacher: async () => evidence(0.05) }, async (handle) => {
      await waitsFor(handle, 'teacher');
      await handle.executeUpdate('continueAnyway', { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });
});

describe('stopped by a person', () => {
  it('stop cancels the batch in flight, saves what was trained and ends as stopped', async () => {
    const started = Promise.withResolvers<void>();
    await run({ runTrial: trialsUntilCancelled('-s0002', started.resolve) }, async (handle) => {
      await started.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped', weights: { statePath: 'tinker://s/weights/step-0001' } });
    });
  });

  it('a cancelled run cancels the batch in flight, saves what was trained once and ends as cancelled', async () => {
    const saved: string[] = [];
    const noting = notingIn(saved);
    const { saveState, saveSampler } = fakeActivities();
    const started = Promise.withResolvers<void>();
    const activities = {
      runTrial: trialsUntilCancelled('-s0002', started.resolve),
      saveState: noting(({ name }) => `state ${name}`, saveState),
      saveSampler: noting(({ name }) => `sampler ${name}`, saveSampler),
    };
    await run(activities, async (handle) => {
      await started.promise;
      await handle.cancel();
      await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
      const { outcome, weights } = await handle.query(statusQuery);
      expect({ outcome, weights }).toMatchObject({ outcome: 'stopped', weights: { statePath: 'tinker://s/weights/step-0001' } });
      const { events } = await handle.fetchHistory();
      expect(events?.filter((event) => event.workflowTaskFailedEventAttributes)).toEqual([]);
    });
    expect(saved).toEqual(['sampler step-0000', 'sampler step-0001', 'state step-0001']);
  });
});
