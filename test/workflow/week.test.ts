import { expect, it } from 'vitest';
import { decidePromotionUpdate, declineCostUpdate, statusQuery } from '../../workflows/messages.ts';
import { timeSkippingServer } from './environment.ts';
import { fakeActivities } from './fake-activities.ts';
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

it('approved after a month it promotes what it has, and runs nothing again that was paid for', async () => {
  const calls: string[] = [];
  const noting = notingIn(calls);
  const fake = fakeActivities();
  const activities = {
    resolveRun: resolvedAs({ promote: true }),
    runTrial: noting(({ trialId }) => trialId, fake.runTrial),
    scoreEpisode: noting(({ trialId }) => `score ${trialId}`, fake.scoreEpisode),
    trainBatch: noting(({ step }) => `train ${step}`, fake.trainBatch),
    promoteAdapter: noting(() => 'promote', fake.promoteAdapter),
  };
  await run(activities, async (handle) => {
    await asks(handle, 'promotion');
    const before = [...calls];
    await env().sleep('30 days');
    await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: true }] });
    expect(await handle.result()).toMatchObject({ outcome: 'promoted' });
    expect(calls).toEqual([...before, 'promote']);
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
