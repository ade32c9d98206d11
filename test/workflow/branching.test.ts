import { describe, expect, it } from 'vitest';
import type { StatePath } from '../../core/ids.ts';
import type { Branch } from '../../core/run/branch.ts';
import { HOUR_MS } from '../../core/training/testing/kept-run.ts';
import { checkpointsQuery, continueAnywayUpdate, statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { localServer, timeSkippingServer } from './environment.ts';
import { evidence } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { keptService } from './kept-service.ts';
import { observed } from './observed.ts';
import { ask, notingIn, replay, resolvedAs, serverOfFile, startIn, waitsFor } from './runs.ts';

const BRANCH: Branch = {
  statePath: 'tinker://old/weights/step-0007' as StatePath,
  updates: 7,
  source: { runId: 'old', executionId: 'e', state: 'step-0007', savedAtMs: 1 },
};
const PREFLIGHT_NOTICE = 'training starts from tinker://old/weights/step-0007, with its optimizer moments';

/** Activities that also note how the branch is opened. */
function opened() {
  const { calls, activities } = observed();
  const noting = notingIn(calls);
  const fake = fakeActivities();
  const opening: Partial<AllActivities> = {
    checkBranch: noting(() => 'checked branch', fake.checkBranch),
    checkModels: noting(() => 'checked models', fake.checkModels),
    checkSandbox: noting(() => 'checked sandbox', fake.checkSandbox),
    openTraining: async (order) => {
      calls.push(`opened from ${order.base?.statePath} (${order.base?.updates})`);
      return { ...(await fake.openTraining(order)), notice: PREFLIGHT_NOTICE };
    },
    closeTraining: noting(() => 'closed', fake.closeTraining),
  };
  return { calls, activities: { ...activities, ...opening } };
}

describe('a run that starts from trained weights', () => {
  const env = serverOfFile(localServer);
  const run = startIn(env);

  it('loads them in preflight, saves them as its own, and samples its first step from them', async () => {
    const { calls, activities } = opened();
    const id = await run({ ...activities, resolveRun: resolvedAs({ branch: BRANCH }) }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const status = await handle.query(statusQuery);
      expect(status).toMatchObject({ branch: BRANCH, step: 2, notices: expect.arrayContaining([PREFLIGHT_NOTICE]) });
      expect((await handle.query(checkpointsQuery)).bases.at(-1)).toEqual({
        name: 'step-0007 of run old',
        step: 0,
        path: BRANCH.statePath,
      });
      return handle.workflowId;
    });
    expect(calls).toEqual([
      'checked branch',
      'checked sandbox',
      'checked models',
      'opened from tinker://old/weights/step-0007 (7)',
      'state step-0000',
      'evaluated teacher of teacher',
      'evaluated student-before of student',
      'compared measured measured',
      'sampler step-0000',
      'train 1 on step-0000',
      'sampler step-0001',
      'state step-0001',
      'train 2 on step-0001',
      'state step-0002',
      'sampler step-0002',
      'closed',
      'evaluated student-after of step-0002',
    ]);
    await replay(env(), id);
  });

  it('ends in preflight, before anything is paid for, where the service does not have them', async () => {
    const { calls, activities } = opened();
    const gone = { name: 'starts from', ok: false, detail: 'the service does not have it', numbers: {} };
    const checkBranch = async () => gone;
    await run({ ...activities, checkBranch, resolveRun: resolvedAs({ branch: BRANCH }) }, async (handle) => {
      await expect(handle.result()).rejects.toMatchObject({
        cause: { type: 'PreflightFailed', message: 'starts from: the service does not have it' },
      });
    });
    expect(calls).toEqual([]);
  });

  it('stopped before its first step, leaves the weights it came with', async () => {
    const { calls, activities } = opened();
    const unsure = { ...activities, compareTeacher: async () => evidence(-1), resolveRun: resolvedAs({ branch: BRANCH }) };
    await run(unsure, async (handle) => {
      await waitsFor(handle, 'teacher');
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped', weights: null, resume: { latest: { step: 0 } } });
    });
    expect(calls.slice(-2)).toEqual(['evaluated student-before of student', 'closed']);
  });
});

describe('a wait of days between preflight and the first step', () => {
  const env = serverOfFile(timeSkippingServer);
  const run = startIn(env);

  it('the run’s own copy is saved again when it expired, whatever became of the other run', async () => {
    const service = keptService(() => env().currentTimeMs(), { ttlMs: 2 * HOUR_MS, canRenew: false });
    const unsure = { ...service.activities, compareTeacher: async () => evidence(-1) };
    const resolveRun = resolvedAs({ branch: BRANCH }, { steps: 1, checkpoints: { ttlSeconds: 7200, keepLast: null } });
    await run({ ...unsure, resolveRun }, async (handle) => {
      const kind = async () => (await handle.query(statusQuery).catch(() => null))?.waitingFor?.kind;
      await expect.poll(kind, { timeout: 40_000 }).toBe('teacher');
      await env().sleep('3 days');
      await handle.executeUpdate(continueAnywayUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const { notices } = await handle.query(statusQuery);
      expect(notices.join('\n')).toMatch(
        /gone: step-0000 \(state\)\. Training can be rebuilt from the training state step-0007 of run old/,
      );
    });
    expect(service.saves.filter((save) => save.startsWith('state'))).toEqual(['state step-0000', 'state step-0000-2', 'state step-0001']);
  });
});
