import { expect, it } from 'vitest';
import { decidePromotionUpdate, declineCostUpdate, statusQuery } from '../../workflows/messages.ts';
import { timeSkippingServer } from './environment.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, type Handle, notingIn, resolvedAs, serverOfFile, startIn } from './runs.ts';

const env = serverOfFile(timeSkippingServer);
const run = startIn(env);

/** The time-skipping server leaves a query that meets a workflow task without an answer now and then: ask again. */
const QUERY_PATIENCE_MS = 3_000;

async function asks(handle: Handle, kind: string): Promise<void> {
  const status = () =>
    env()
      .connection.withDeadline(Date.now() + QUERY_PATIENCE_MS, () => handle.query(statusQuery))
      .catch(() => null);
  await expect.poll(async () => (await status())?.waitingFor?.kind, { timeout: 40_000 }).toBe(kind);
}

/** Activities that cost nothing: they look after what is there, and tell of it. */
const FREE = ['tendCheckpoints', 'mirrorRun', 'promoteAdapter'];

it('approved after a month it promotes what it has, and nothing is done again that was paid for', async () => {
  const calls: string[] = [];
  const noting = notingIn(calls);
  const fakes = { ...fakeActivities(), resolveRun: resolvedAs({ promote: true }, { checkpoints: { ttlSeconds: 7200, keepLast: null } }) };
  const noted = Object.entries(fakes).map(([name, work]) => [name, noting(() => name, work as (order: unknown) => unknown)]);
  await run(Object.fromEntries(noted) as AllActivities, async (handle) => {
    await asks(handle, 'promotion');
    expect(calls).toEqual(expect.arrayContaining(['runTrial', 'scoreEpisode', 'trainBatch', 'saveState', 'saveSampler', 'checkModels']));
    calls.length = 0;
    await env().sleep('30 days');
    await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: true }] });
    expect(await handle.result()).toMatchObject({ outcome: 'promoted' });
    expect(calls.filter((name) => !FREE.includes(name))).toEqual([]);
    expect(calls.filter((name) => name === 'promoteAdapter')).toHaveLength(1);
  });
});

it('waits for a week without losing anything, and ends declined', async () => {
  await run({ resolveRun: resolvedAs({ yes: false }) }, async (handle) => {
    await asks(handle, 'cost');
    await env().sleep('7 days');
    await handle.executeUpdate(declineCostUpdate, { args: [ask] });
    expect(await handle.result()).toMatchObject({ outcome: 'declined', evaluations: [] });
  });
});
