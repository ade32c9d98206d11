import { describe, expect, it } from 'vitest';
import { BadSandboxCap, capacity, capacityAfterReap, capacityRefusal, sandboxCap } from './capacity.ts';
import { readLedgers } from './ledger.ts';
import { type KillResult, planReap, type ReapOptions, settleReap } from './reap.ts';
import type { RunningSandbox } from './sandbox.ts';

const created = (sandbox_id: string, pid: number) =>
  `{"event":"created","sandbox_id":"${sandbox_id}","template_id":"t","created_at":"x","pid":${pid}}`;
const released = (sandbox_id: string, pid: number) => `{"event":"released","sandbox_id":"${sandbox_id}","released_at":"x","pid":${pid}}`;
const running = (...ids: string[]): RunningSandbox[] =>
  ids.map((sandboxId) => ({ sandboxId, startedAtMs: 0, metadata: { session_id: `${sandboxId}__env`, environment_name: 'task' } }));

function reap(
  files: Record<string, string[]>,
  alive: number[],
  { options = {}, kills = {} }: { options?: Partial<ReapOptions>; kills?: Record<string, KillResult> } = {},
) {
  const ledgers = readLedgers(Object.fromEntries(Object.entries(files).map(([file, lines]) => [file, lines.join('\n')])));
  const input = {
    ledgers,
    running: running('a', 'b'),
    isAlive: (pid: number) => alive.includes(pid),
    nowMs: 3_600_000,
    options: { deadOwners: true, staleMinutes: null, ...options },
  };
  const plan = planReap(input);
  const results = new Map(plan.candidates.map(({ sandboxId }) => [sandboxId, kills[sandboxId] ?? 'killed'] as const));
  return { ids: plan.candidates.map(({ sandboxId }) => sandboxId), outcome: settleReap(plan, results, input) };
}

describe('the ledger', () => {
  it('a sandbox that was created again is held again', () => {
    const [ledger] = readLedgers({ '7-x.jsonl': [created('a', 7), released('a', 7), created('a', 7)].join('\n') });
    expect(ledger).toMatchObject({ held: [{ sandboxId: 'a' }], released: [] });
  });

  it('the last event of a sandbox wins, whatever order the others came in', () => {
    const lines = [released('a', 7), created('a', 7), created('b', 7), released('b', 7), released('b', 7), created('c', 7), 'torn {'];
    const [ledger] = readLedgers({ '7-x.jsonl': lines.join('\n') });
    expect(ledger?.held.map(({ sandboxId }) => sandboxId)).toEqual(['a', 'c']);
    expect(ledger?.released).toEqual(['b']);
  });

  it('what is written off is held again once it is created again', () => {
    const files = { '1-x.jsonl': [created('a', 1), released('a', 1), created('a', 1)] };
    expect(reap(files, [])).toMatchObject({ ids: ['a'], outcome: { freed: 1, prunable: ['1-x.jsonl'] } });
    expect(reap(files, [1]).ids).toEqual([]);
  });

  it('any living owner protects, whichever file comes first', () => {
    const files = { '1-x.jsonl': [created('a', 1)], '2-x.jsonl': [created('a', 2)] };
    for (const alive of [[1], [2]]) expect(reap(files, alive, { options: { staleMinutes: 1 } }).ids).toEqual(['b']);
    expect(reap(files, []).outcome.ledgers.map(({ held }) => held.length)).toEqual([0, 0]);
  });

  it('empty ledgers of dead owners are removed, of living ones never', () => {
    expect(reap({ '1-x.jsonl': [], '2-x.jsonl': ['torn {'] }, [2]).outcome.prunable).toEqual(['1-x.jsonl']);
  });

  it('process 0 owns nothing, even where it seems to live', () => {
    expect(reap({ 'x.jsonl': [created('a', 0)] }, [0]).ids).toEqual(['a']);
  });
});

describe('capacity', () => {
  it('counts what was gone already as free; the reap itself counts its kills only', () => {
    const { outcome } = reap({ '1-x.jsonl': [created('a', 1), created('b', 1)] }, [], { kills: { a: 'gone' } });
    expect(outcome.freed).toBe(1);
    expect(capacityAfterReap(capacity({ cap: 10, running: 4, required: 8 }), outcome)).toMatchObject({ running: 2, free: 8, ok: true });
  });

  it('a refusal names the numbers and the concurrency that fits', () => {
    expect(capacityRefusal(capacity({ cap: 100, running: 93, required: 8 }))).toMatch(
      /8 needed, 7 free \(93 running, cap 100\).* at most 7/,
    );
    expect(capacityRefusal(capacity({ cap: 5, running: 9, required: 1 }))).toMatch(/0 free .*wait until/);
  });

  it.each(['0', '-1', '1e3', '1.5', '\u0663', '1__0', '_1', '1_', 'ten'])('refuses the cap %s', (value) => {
    expect(() => sandboxCap(value)).toThrow(BadSandboxCap);
  });

  it('reads a cap as people write numbers', () => {
    expect([undefined, null, ' ', '7', ' +7 ', '1_000'].map(sandboxCap)).toEqual([100, 100, 100, 7, 7, 1000]);
  });
});
