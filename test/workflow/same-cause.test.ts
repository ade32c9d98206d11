import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it as inTurn } from 'vitest';
import { NO_USAGE } from '../../core/measures/usage.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import type { TrialSpec, TrialSummary } from '../../core/run/trial.ts';
import { resumeUpdate, statusQuery } from '../../workflows/messages.ts';
import { activitiesByRun } from './by-run.ts';
import { localServer, withWorkers } from './environment.ts';
import { trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, type Handle, INPUT, replay, resolvedAs, serverOfFile, waitsFor } from './runs.ts';

/** Failures in a row for one cause end a run: nothing more is started, and nothing that was paid for is lost. */

const env = serverOfFile(localServer);
const worlds = new Map<string, AllActivities>();
const over = Promise.withResolvers<void>();
let workers: Promise<void>;
beforeAll(() => {
  workers = withWorkers(
    env(),
    activitiesByRun((id) => worlds.get(id)),
    () => over.promise,
  );
});
afterAll(() => {
  over.resolve();
  return workers;
}, 60_000);

/** Starts a run with the activities that a test names; one set of workers is there for all. */
async function run(activities: Partial<AllActivities>, test: (handle: Handle) => Promise<unknown>): Promise<void> {
  const workflowId = `run-${randomUUID()}`;
  worlds.set(workflowId, fakeActivities(activities));
  await test((await env().client.workflow.start('distill', { taskQueue: 'stillroom', workflowId, args: [INPUT] })) as Handle);
}

const it = inTurn.concurrent;

const imported = { importedBaselines: { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') } };
/** Eight trials in a step, one at a time, each tried once. */
const EIGHT = { steps: 2, groupSize: 4, trialConcurrency: 1, infraRetries: 0, sameCauseFailures: 3 };
const dead = (spec: TrialSpec, why = 'no tmux'): TrialSummary =>
  trialFor(spec, {
    executed: false,
    passed: false,
    reward: null,
    spans: null,
    exceptionType: 'RuntimeError',
    exceptionMessage: `RuntimeError: trial ${spec.trialId} of ${spec.task.id}: ${why}`,
    fault: 'sandbox',
  });

/** Trials that end as `endings` says, one after the other, the last ending over and over; each costs 3 cents. */
function playing(...endings: readonly ((spec: TrialSpec) => TrialSummary)[]) {
  const played: string[] = [];
  const runTrial: AllActivities['runTrial'] = async (spec) => {
    const ending = endings[Math.min(played.length, endings.length - 1)] ?? trialFor;
    played.push(spec.trialId.slice(9));
    return ending(spec);
  };
  return { played, runTrial };
}
const fine = (spec: TrialSpec) => trialFor(spec);
const scoreEpisode: AllActivities['scoreEpisode'] = async ({ trialId }) => ({
  ...{ trialId, scored: null, candidates: null, datums: 0, fragments: 0, lossTokens: 0, overflowDropped: false, overlongDropped: false },
  ...{ ...NO_USAGE, usd: 0, trainUsd: 0 },
});

it('every trial of a step dies before its first turn: three do, then the run ends with the cause, one trial and what to do', async () => {
  const { played, runTrial } = playing(dead);
  await run({ resolveRun: resolvedAs(imported, EIGHT), runTrial }, async (handle) => {
    const end = await handle.result().catch((error) => error);
    expect(end).toMatchObject({ cause: { type: 'SameFailure' } });
    expect(end.cause.message).toMatch(/^step 1: 3 trials in a row failed for the same cause.*no tmux\n/);
    expect(end.cause.message).toMatch(/The last was trial 0123abcd-s0001-000-2 of task a\. Look at the sandboxes: `stillroom doctor`/);
    const { spend, notices, child } = await handle.query(statusQuery);
    expect(spend.usd).toBeCloseTo(0.09);
    expect(notices).toContainEqual(expect.stringContaining('no tmux'));
    expect(child).toBeNull();
    await replay(env(), handle.workflowId, `${handle.workflowId}.step-0001`);
  });
  expect(played).toEqual(['s0001-000-0', 's0001-000-1', 's0001-000-2']);
});

it('retries count like first tries', async () => {
  const { played, runTrial } = playing(dead);
  await run({ resolveRun: resolvedAs(imported, { ...EIGHT, infraRetries: 1 }), runTrial }, (handle) =>
    expect(handle.result()).rejects.toMatchObject({ cause: { type: 'SameFailure' } }),
  );
  expect(played).toEqual(['s0001-000-0', 's0001-000-0-r1', 's0001-000-1']);
});

describe('a run goes on', () => {
  const other = (spec: TrialSpec) => dead(spec, `no ${spec.trialId.endsWith('0') ? 'disk' : 'room'}`);
  it.each<[string, object, readonly ((spec: TrialSpec) => TrialSummary)[]]>([
    ['when a trial in between is executed', {}, [dead, dead, fine, dead, dead, fine, dead, dead, fine]],
    ['when the causes differ', {}, [dead, dead, other, dead, dead, other, dead, dead, fine]],
    ['when it is told never to end so', { sameCauseFailures: 0 }, [...Array(7).fill(dead), fine]],
  ])('%s', async (_, plan, endings) => {
    const { played, runTrial } = playing(...endings);
    await run({ resolveRun: resolvedAs(imported, { ...EIGHT, ...plan, steps: 1 }), runTrial, scoreEpisode }, async (handle) =>
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' }),
    );
    expect(played).toHaveLength(8 + 2); // the step, and the held-out tasks
  });
});

it('trials that run when the third has failed come to their end, and are paid for', async () => {
  const late = Promise.withResolvers<void>();
  const ended: string[] = [];
  const runTrial: AllActivities['runTrial'] = async (spec) => {
    if (spec.trialId.endsWith('-000-0')) {
      await late.promise;
      ended.push(spec.trialId);
      return trialFor(spec);
    }
    if (spec.trialId.endsWith('-000-3')) setTimeout(late.resolve, 300);
    return dead(spec);
  };
  await run({ resolveRun: resolvedAs(imported, { ...EIGHT, trialConcurrency: 2 }), runTrial, scoreEpisode }, async (handle) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'SameFailure' } });
    expect((await handle.query(statusQuery)).spend.usd).toBeCloseTo(0.12);
  });
  expect(ended).toHaveLength(1);
});

it('the count goes on after a wait for payment', async () => {
  const refused = { once: false };
  const { played, runTrial } = playing(dead);
  const asking: AllActivities['runTrial'] = async (spec) => {
    if (played.length < 2 || refused.once) return runTrial(spec);
    refused.once = true;
    throw ApplicationFailure.nonRetryable('402', 'BillingPaused', { ...NO_USAGE, usd: 0 });
  };
  await run({ resolveRun: resolvedAs(imported, EIGHT), runTrial: asking }, async (handle) => {
    await waitsFor(handle, 'billing');
    await handle.executeUpdate(resumeUpdate, { args: [ask] });
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'SameFailure' } });
  });
  expect(played).toEqual(['s0001-000-0', 's0001-000-1', 's0001-000-2']);
});

it('in a later step: what the steps before it left stays, and can be gone on from', async () => {
  const { runTrial } = playing(...Array(8).fill(fine), dead);
  await run({ resolveRun: resolvedAs(imported, EIGHT), runTrial }, async (handle) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'SameFailure', message: expect.stringMatching(/^step 2: 3 /) } });
    expect((await handle.query(statusQuery)).resume.latest).toMatchObject({ step: 1 });
  });
});

it.each([
  ['an evaluation', imported, EIGHT, 'student-after', (spec: TrialSpec) => (spec.trialId.includes('-ea-') ? dead(spec) : trialFor(spec))],
  ['a baseline', {}, EIGHT, 'teacher', (spec: TrialSpec) => dead(spec)],
] as const)('%s ends its run too', async (_, over, plan, label, ending) => {
  const { runTrial } = playing(ending);
  await run({ resolveRun: resolvedAs(over, { ...plan, steps: 1, gateK: 4 }), runTrial }, (handle) =>
    expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'SameFailure', message: expect.stringMatching(`^${label}: 3 trials`) },
    }),
  );
});

it("of the teacher's play for a warm-up, what there is is kept", async () => {
  const kept: string[] = [];
  const keepTrajectories: AllActivities['keepTrajectories'] = async ({ trials, areAll }) => {
    kept.push(`${trials.count} ${areAll}`);
    return { list: 'l' as never, ...NO_USAGE, usd: 0 };
  };
  const { runTrial } = playing(fine, dead);
  const plan = { ...EIGHT, warmup: { steps: 1, rolloutsPerTask: 4, loaded: false } };
  await run({ resolveRun: resolvedAs(imported, plan), runTrial, keepTrajectories }, (handle) =>
    expect(handle.result()).rejects.toMatchObject({ cause: { type: 'SameFailure', message: expect.stringMatching(/^warm-up: 3 trials/) } }),
  );
  expect(kept).toEqual(['4 false']);
});
