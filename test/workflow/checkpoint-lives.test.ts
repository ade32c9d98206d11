import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../core/training/testing/kept-run.ts';
import { checkpointsQuery, setBudgetUpdate, statusQuery, sweepCheckpointsUpdate } from '../../workflows/messages.ts';
import { timeSkippingServer } from './environment.ts';
import type { AllActivities } from './fake-activities.ts';
import { keptService } from './kept-service.ts';
import { ask, type Handle, resolvedAs, serverOfFile, startIn } from './runs.ts';

const env = serverOfFile(timeSkippingServer);
const run = startIn(env);

/** The time-skipping server leaves a query that meets a workflow task without an answer now and then: ask again. */
const QUERY_PATIENCE_MS = 3_000;
const answered = <T>(query: () => Promise<T>): Promise<T | null> =>
  env()
    .connection.withDeadline(Date.now() + QUERY_PATIENCE_MS, query)
    .catch(() => null);

const nowMs = () => env().currentTimeMs();

/** A run with a life of two hours that reaches its cap after the second step. */
const CAPPED: AllActivities['resolveRun'] = resolvedAs({}, { steps: 3, maxUsd: 0.35, checkpoints: { ttlSeconds: 7200, keepLast: null } });

async function atBudget(handle: Handle): Promise<void> {
  const kind = async () => (await answered(() => handle.query(statusQuery)))?.waitingFor?.kind;
  await expect.poll(kind, { timeout: 40_000 }).toBe('budget');
}

async function told<T>(query: () => Promise<T>): Promise<T> {
  for (let asked = 0; asked < 10; asked++) {
    const answer = await answered(query);
    if (answer !== null) return answer;
  }
  throw new Error('the server does not answer');
}

describe('a life of two hours against three days at the cap', () => {
  it('is renewed while the run waits, and the run goes on from what it had', async () => {
    const service = keptService(nowMs, { ttlMs: 2 * HOUR_MS });
    await run({ resolveRun: CAPPED, ...service.activities }, async (handle) => {
      await atBudget(handle);
      const { checkpoints } = await told(() => handle.query(statusQuery));
      expect(checkpoints.firstEnd).not.toBeNull();
      await env().sleep('3 days');
      expect(await service.missing('step-0002')).toEqual([]);
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      expect(service.saves).toEqual([
        'sampler step-0000',
        'sampler step-0001',
        'state step-0001',
        'sampler step-0002',
        'state step-0002',
        'state step-0003',
        'sampler step-0003',
      ]);
      // The final weights have no end any more.
      expect(service.endOf('step-0003')).toEqual([null, null]);
      expect(service.renewals.length).toBeLessThan(20);
    });
  });

  it('is warned of where the service does not renew; after the pause the run says what is left and makes it again', async () => {
    const service = keptService(nowMs, {
      ttlMs: 2 * HOUR_MS,
      keepFor: (name) => (name === 'step-0001' ? null : 2 * HOUR_MS),
      canRenew: false,
    });
    await run({ resolveRun: CAPPED, ...service.activities }, async (handle) => {
      await atBudget(handle);
      await env().sleep('90 minutes');
      const { notices, checkpoints } = await told(() => handle.query(statusQuery));
      expect(notices.join('\n')).toMatch(
        /step-0002 \(sampler\), step-0002 \(state\) will expire, the first at .*: the service does not renew it .*goes on from the training state step-0001/,
      );
      expect(checkpoints.warning).toMatch(/does not renew it/);
      expect(await service.missing('step-0002')).toEqual([]);
      await env().sleep('3 days');
      expect(await service.missing('step-0002')).toHaveLength(2);
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const after = await told(() => handle.query(statusQuery));
      expect(after.notices.join('\n')).toMatch(
        /expired on the service and gone: step-0002 \(sampler\), step-0002 \(state\)\. Training can be rebuilt from the training state step-0001 .*, else from the base model/,
      );
      expect(service.saves.filter((saved) => saved.includes('step-0002'))).toEqual([
        'sampler step-0002',
        'state step-0002',
        // Under a name of its own: what expired may still hold the old one.
        'sampler step-0002-2',
        'state step-0002-2',
      ]);
      const { rows } = await told(() => handle.query(checkpointsQuery));
      expect(
        rows.filter(({ name, gone }) => name === 'step-0003' && gone === null).map(({ pinned }) => pinned.includes('promoted')),
      ).toEqual([true, true]);
    });
  });
});

describe('keep_last', () => {
  const keeping = (keepLast: number | null): AllActivities['resolveRun'] =>
    resolvedAs({}, { steps: 5, maxUsd: 0.55, checkpoints: { ttlSeconds: null, keepLast } });
  const steps = (paths: readonly string[]) => paths.map((path) => path.replace('tinker://s/', '')).toSorted();

  it('deletes what is old and not needed after each save, and never fails the run; without an end there is no timer', async () => {
    const service = keptService(nowMs, { ttlMs: null });
    service.failDeletions(1);
    await run({ resolveRun: keeping(1), ...service.activities }, async (handle) => {
      await atBudget(handle);
      await env().sleep('3 days');
      expect(steps(service.paths())).toEqual([
        'sampler_weights/step-0003',
        'sampler_weights/step-0004',
        'weights/step-0003',
        'weights/step-0004',
      ]);
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted', resume: { latest: { step: 5 } } });
      const { events } = await handle.fetchHistory();
      // The one that ends the session of a training that waits long, and none for checkpoints.
      expect(events?.filter((event) => event.timerStartedEventAttributes)).toHaveLength(1);
    });
  });

  it('a person sweeps a run that waits; what it needs stays', async () => {
    const service = keptService(nowMs, { ttlMs: null });
    await run({ resolveRun: keeping(null), ...service.activities }, async (handle) => {
      await atBudget(handle);
      expect(service.paths()).toHaveLength(9);
      const plan = await told(() => handle.query(checkpointsQuery, { keepLast: 2 }));
      const going = plan.rows.filter(({ wouldSweep }) => wouldSweep).map(({ path }) => path);
      await expect(handle.executeUpdate(sweepCheckpointsUpdate, { args: [ask] })).rejects.toMatchObject({ cause: { message: /keepLast/ } });
      const { rows } = await handle.executeUpdate(sweepCheckpointsUpdate, { args: [{ ...ask, keepLast: 2 }] });
      expect(rows.filter(({ gone }) => gone?.by === 'sweep').map(({ path }) => path)).toEqual(going);
      expect(steps(service.paths())).toEqual([
        'sampler_weights/step-0003',
        'sampler_weights/step-0004',
        'weights/step-0003',
        'weights/step-0004',
      ]);
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });
});
