import { expect, test } from 'vitest';
import { CliError, NoAnswer, NoServer } from './errors.ts';
import { type FollowedRun, followRun, type Snapshot } from './follow.ts';
import type { HeldUp } from './held-up.ts';
import { runResult, runStatus } from './testing/runs.ts';

type Moment = { state?: 'open' | 'closed' | Error; status?: ReturnType<typeof runStatus> | Error; progress?: Error; child?: Error };

const heldUp = (activity: string): HeldUp => ({ activity, count: 1, attempt: 3, failure: 'the service asks for payment', wait: null });

/** A run that shows one moment after another; the last one stays. */
function scripted(moments: readonly Moment[]): FollowedRun {
  let at = -1;
  const now = () => moments[Math.min(at, moments.length - 1)] ?? {};
  return {
    state: async () => {
      at++;
      const { state = 'open' } = now();
      if (state instanceof Error) throw state;
      return { open: state === 'open', startedAtMs: 1_000, closedAtMs: state === 'open' ? null : 61_000, heldUp: [heldUp('trainBatch')] };
    },
    status: async () => {
      const { status = runStatus({}) } = now();
      if (status instanceof Error) throw status;
      return status;
    },
    progress: async () => {
      const { progress } = now();
      if (progress) throw progress;
      return {
        label: 'step 1',
        trials: 8,
        done: 3,
        running: 4,
        executed: 3,
        passed: 1,
        infraFailed: 0,
        failing: null,
        spentUsd: 0,
        reservedUsd: 0,
      };
    },
    heldUp: async () => {
      const { child } = now();
      if (child) throw child;
      return [heldUp('runTrial')];
    },
    end: async () => ({ kind: 'completed', result: runResult({}) }),
  };
}

async function seen(moments: readonly Moment[]) {
  const snapshots: Snapshot[] = [];
  const followed = await followRun(scripted(moments), { intervalMs: 0, onSnapshot: (snapshot) => void snapshots.push(snapshot) });
  return { snapshots, followed };
}

test('follows a run to its end, with its wall time and last status', async () => {
  const last = runStatus({ phase: 'ended', outcome: 'accepted' });
  const { snapshots, followed } = await seen([{}, { state: 'closed', status: last }]);
  expect(snapshots).toHaveLength(1);
  expect(followed).toEqual({ end: { kind: 'completed', result: runResult({}) }, status: last, wallMs: 60_000 });
});

test('rides out a server that goes away and a worker that dies, and keeps what it knew', async () => {
  const known = runStatus({ phase: 'steps', step: 2 });
  const { snapshots } = await seen([
    { status: known },
    { state: new NoServer('127.0.0.1:1') },
    { status: new NoAnswer('for the status') },
    { status: known },
    { state: 'closed' },
  ]);
  expect(snapshots.map((snapshot) => snapshot.trouble)).toEqual([
    null,
    expect.stringContaining('server does not answer'),
    expect.stringContaining('no worker answers'),
    null,
  ]);
  expect(snapshots.every((snapshot) => snapshot.status === known)).toBe(true);
});

test('asks the open child for its progress; one that just ended has none', async () => {
  const status = runStatus({ child: { workflowId: 'r.step-0001', label: 'step 1' } });
  const { snapshots } = await seen([{ status }, { status, progress: new NoAnswer('for the progress') }, { state: 'closed' }]);
  expect(snapshots.map((snapshot) => snapshot.progress?.done)).toEqual([3, undefined]);
});

test('when no worker can tell the last status any more, the known one is kept', async () => {
  const known = runStatus({ step: 5 });
  const { followed } = await seen([{ status: known }, { state: 'closed', status: new NoAnswer('for the status') }]);
  expect(followed.status).toBe(known);
});

test('an unknown run is an error at once', async () => {
  await expect(seen([{ state: new CliError('there is no run "x"') }])).rejects.toThrow('there is no run "x"');
});

test('an interrupt ends the following at once, also while an answer is waited for', async () => {
  const run = { ...scripted([{}]), status: () => new Promise<never>(() => {}) };
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 10);
  await expect(followRun(run, { intervalMs: 0, signal: controller.signal, onSnapshot: () => {} })).rejects.toThrow(/aborted/);
});

test('what holds a run up is its own and that of the part under way, which may have ended', async () => {
  const child = { label: 'step 2', workflowId: 'run-1/step-2' };
  const running = runStatus({ child });
  const { snapshots } = await seen([
    { status: runStatus({}) },
    { status: running },
    { status: running, child: new CliError('there is no such run') },
    { state: 'closed' },
  ]);
  expect(snapshots.map((snapshot) => snapshot.heldUp.map(({ activity }) => activity))).toEqual([
    ['trainBatch'],
    ['trainBatch', 'runTrial'],
    ['trainBatch'],
  ]);
});
