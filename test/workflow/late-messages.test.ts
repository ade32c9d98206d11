import { expect, it } from 'vitest';
import { MESSAGES } from '../../core/run/decision.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import { decidePromotionUpdate, setBudgetUpdate, statusQuery } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { pinned } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, type Handle, notingIn, resolvedAs, serverOfFile, startIn, waitsFor } from './runs.ts';

const run = startIn(serverOfFile(localServer));

const baselines = { importedBaselines: { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') } };
const resolveRun = resolvedAs({ promote: true, ...baselines }, { steps: 1 });
const input = { ...ask, approve: true, maxUsd: 50 };
const refusal = (sent: Promise<unknown>) =>
  sent.then(
    () => 'taken',
    (error) => error.cause?.message ?? error.message,
  );
const each = (handle: Handle) => Promise.all(MESSAGES.map((name) => refusal(handle.executeUpdate(name, { args: [input] }))));

/** An activity that comes to an end when the test says so. */
function held<Name extends 'resolveRun' | 'mirrorRun'>(work: AllActivities[Name]) {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const activity = async (order: never) => {
    begun.resolve();
    await released.promise;
    return (work as (order: never) => unknown)(order);
  };
  return { begun: begun.promise, release: released.resolve, activity: activity as AllActivities[Name] };
}

it('a budget that is set before the run knows its own is the one that counts', async () => {
  const resolving = held<'resolveRun'>(async ({ runId }) => pinned({ runId, ...baselines }, { steps: 1, maxUsd: 0.01 }));
  await run({ resolveRun: resolving.activity }, async (handle) => {
    await resolving.begun;
    await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 7 }] });
    resolving.release();
    expect(await handle.result()).toMatchObject({ outcome: 'accepted', spend: { maxUsd: 7 } });
  });
});

it('of two answers at once one is taken, and the other is told of it', async () => {
  const promoted: string[] = [];
  const promoteAdapter = notingIn(promoted)(() => 'promoted', fakeActivities().promoteAdapter);
  await run({ resolveRun, promoteAdapter }, async (handle) => {
    await waitsFor(handle, 'promotion');
    const answer = (by: string, approve: boolean) =>
      refusal(handle.executeUpdate(decidePromotionUpdate, { args: [{ by, approve, waitId: 'promotion-1' }] }));
    const told = await Promise.all([answer('one', true), answer('other', false)]);
    expect(told).toContain('taken');
    const { outcome } = await handle.result();
    const [winner, approve] = told[0] === 'taken' ? ['one', true] : ['other', false];
    expect(told.filter((text) => text !== 'taken')).toEqual([
      expect.stringMatching(new RegExp(`promotion-1 was already decided: decidePromotion ${approve} by ${winner}`)),
    ]);
    expect([outcome, promoted]).toEqual(approve ? ['promoted', ['promoted']] : ['promotion declined', []]);
  });
});

it.each(['declined', 'cancelled'] as const)(
  'while the last state of a %s run is written, and after it, no message changes anything',
  async (how) => {
    const promoted: string[] = [];
    const promoteAdapter = notingIn(promoted)(() => 'promoted', fakeActivities().promoteAdapter);
    const mirroring = held<'mirrorRun'>(async () => undefined);
    await run({ resolveRun, promoteAdapter, mirrorRun: mirroring.activity }, async (handle) => {
      await waitsFor(handle, 'promotion');
      if (how === 'declined') await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: false }] });
      else await handle.cancel();
      await mirroring.begun;
      const before = await handle.query(statusQuery);
      expect(before).toMatchObject({ phase: 'ended', waitingFor: null });
      const told = await each(handle);
      expect(told).toEqual(MESSAGES.map((name) => expect.stringMatching(`^${name}: the run has ended`)));
      if (how === 'declined') expect(told[MESSAGES.indexOf('decidePromotion')]).toMatch(/already decided: decidePromotion false by tester/);
      await handle.signal('promote', input);
      mirroring.release();
      await handle.result().catch(() => {});
      expect((await each(handle)).every((text) => text !== 'taken')).toBe(true);
      await expect(handle.signal('promote', input)).rejects.toThrow(/completed|not found/i);
      const after = await handle.query(statusQuery);
      expect(after).toEqual({
        ...before,
        decisions: [...before.decisions, expect.objectContaining({ message: 'decidePromotion', applied: false })],
      });
    });
    expect(promoted).toEqual([]);
  },
);
