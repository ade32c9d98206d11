import { beforeEach, describe, expect, it } from 'vitest';
import type { WaitReport } from '../../services/tinker/index.ts';
import type { RuleInput } from '../../trainer/faults/plan.ts';
import { faultReports, firedBy, on, putFaults } from '../support/faults.ts';
import { withFaultyTrainer } from '../support/faulty-trainer.ts';
import { CALLS, FUTURES, runProgram } from './client-program.ts';

/** Faults that the client waits out or mends: every call of the program meets them once, and its outcome is the undisturbed one. */

let url: string;
let undisturbed: Awaited<ReturnType<typeof runProgram>>;
withFaultyTrainer(async ({ trainer }) => {
  url = trainer.url;
  undisturbed = await runProgram(url);
});

type Fault = RuleInput['fault'];
const once = <T>(list: readonly T[]) => list.map(() => 1);

describe('at every call', () => {
  it.each<[string, Fault]>([
    ['an empty 400', { kind: 'empty_400' }],
    ['a connection closed before the call', { kind: 'drop' }],
    ['a connection closed after the call', { kind: 'drop_after' }],
    ['no answer until the connection is closed', { kind: 'hang', ms: 30 }],
    ['a late promise', { kind: 'delay_promise', ms: 30 }],
    ['a call that arrives twice, answered first', { kind: 'duplicate_promise' }],
    ['a call that arrives twice, answered second', { kind: 'duplicate_promise', send: 'second' }],
    ['408', { kind: 'status', status: 408, retry_after_ms: 20, queue_state: 'paused_capacity' }],
    ['409', { kind: 'status', status: 409, retry_after_ms: 20 }],
    ['429', { kind: 'status', status: 429, retry_after_ms: 20 }],
    ['500', { kind: 'status', status: 500, retry_after_ms: 20 }],
    ['502', { kind: 'status', status: 502, retry_after_ms: 20 }],
    ['503, to be retried', { kind: 'status', status: 503, retry_after_ms: 20, should_retry: true }],
    ['503, not to be retried at once', { kind: 'status', status: 503, retry_after_ms: 20, should_retry: false }],
    ['504', { kind: 'status', status: 504, retry_after_ms: 20 }],
  ])('%s', async (_, fault) => {
    await putFaults(url, ...CALLS.map((call) => on(call, fault)));
    expect(await runProgram(url)).toEqual(undisturbed);
    expect(await firedBy(url)).toEqual(once(CALLS));
  });
});

describe('at every wait for a result', () => {
  it.each<[string, Fault]>([
    ['an empty 400', { kind: 'empty_400' }],
    ['a connection closed before the poll', { kind: 'drop' }],
    ['a connection closed instead of the result', { kind: 'drop_after' }],
    ['no answer until the connection is closed', { kind: 'hang', ms: 30 }],
    ['a late answer', { kind: 'delay_promise', ms: 30 }],
    ['a poll that arrives twice', { kind: 'duplicate_promise', send: 'second' }],
    ['400, for once', { kind: 'status', status: 400 }],
    ['408', { kind: 'status', status: 408, queue_state: 'paused_capacity' }],
    ['429', { kind: 'status', status: 429, retry_after_ms: 20 }],
    ['500', { kind: 'status', status: 500 }],
    ['502', { kind: 'status', status: 502 }],
    ['503', { kind: 'status', status: 503 }],
    ['504', { kind: 'status', status: 504 }],
    ['a result that is pending for some polls', { kind: 'pending', polls: 3 }],
    ['a result that is pending for a time', { kind: 'pending', ms: 60, queue_state: 'paused_rate_limit' }],
  ])('%s', async (_, fault) => {
    await putFaults(url, ...FUTURES.map((type) => on('retrieve_future', fault, { for: type })));
    expect(await runProgram(url)).toEqual(undisturbed);
    expect(await firedBy(url)).toEqual(once(FUTURES));
  });

  it('a sample that is gone is sampled again', async () => {
    const gone = { kind: 'status', status: 410 } as const;
    await putFaults(url, on('retrieve_future', gone, { for: 'Sample', times: 2 }), on('asample', { kind: 'delay_promise', ms: 1 }));
    expect(await runProgram(url)).toEqual(undisturbed);
    expect(await faultReports(url)).toEqual([expect.objectContaining({ fired: 2 }), expect.objectContaining({ matched: 4 })]);
  });

  it('results as JSON', async () => {
    const types = ['ForwardBackward', 'Forward', 'Sample'] as const;
    await putFaults(url, ...types.map((type) => on('retrieve_future', { kind: 'json_result' }, { for: type, times: 'always' })));
    expect(await runProgram(url)).toEqual(undisturbed);
    expect((await firedBy(url)).every((fired) => fired > 1)).toBe(true);
  });
});

describe('all the time', () => {
  it('one request in four fails in some way', async () => {
    const rare = { times: 'always', probability: 0.1 } as const;
    await putFaults(
      url,
      on('*', { kind: 'drop' }, { ...rare, seed: 1 }),
      on('*', { kind: 'drop_after' }, { ...rare, seed: 2 }),
      on('*', { kind: 'status', status: 503, retry_after_ms: 20 }, { ...rare, seed: 3 }),
      on('*', { kind: 'duplicate_promise' }, { ...rare, seed: 4 }),
    );
    expect(await runProgram(url)).toEqual(undisturbed);
    expect((await firedBy(url)).reduce((sum, fired) => sum + fired)).toBeGreaterThan(3);
  });
});

describe('while it waits', () => {
  const waits: WaitReport[] = [];
  const watched = { onWait: (report: WaitReport) => void waits.push(report) };
  beforeEach(() => {
    waits.length = 0;
  });

  it('it obeys Retry-After', async () => {
    await putFaults(
      url,
      on('optim_step', { kind: 'status', status: 429, retry_after_s: 1 }),
      on('asample', { kind: 'status', status: 429, retry_after_ms: 300 }),
    );
    const startMs = performance.now();
    expect(await runProgram(url, watched)).toEqual(undisturbed);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(1300);
    expect(waits.map(({ call }) => call)).toEqual(expect.arrayContaining(['optim_step', 'asample']));
  });

  it('it tells the queue’s state and why', async () => {
    const paused = { queue_state: 'paused_capacity', reason: 'no room' } as const;
    await putFaults(
      url,
      on('retrieve_future', { kind: 'pending', polls: 2, ...paused }, { for: 'OptimStep' }),
      on('retrieve_future', { kind: 'status', status: 408, queue_state: 'paused_rate_limit' }, { for: 'Sample' }),
    );
    expect(await runProgram(url, watched)).toEqual(undisturbed);
    expect(waits).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ queueState: 'paused_capacity', reason: 'no room' }),
        expect.objectContaining({ queueState: 'paused_rate_limit' }),
      ]),
    );
  });

  it('a request without an answer is sent again after its time', async () => {
    await putFaults(url, on('asample', { kind: 'hang', ms: 60_000 }));
    expect(await runProgram(url, { requestTimeoutMs: 800 })).toEqual(undisturbed);
    expect(await firedBy(url)).toEqual([1]);
  });
});
