import { describe, expect, it } from 'vitest';
import type { StatePath } from '../ids.ts';
import {
  alive,
  bookWithout,
  compacted,
  type LedgerEntry,
  type SavedPath,
  withChanged,
  withEnded,
  withMeasured,
} from './checkpoint-ledger.ts';
import { saveLife, sweepable, tendPlan } from './checkpoint-lives.ts';
import { type Pin, type Pins, pinsOf, type Uses } from './checkpoint-pins.ts';
import { type TendResult, withTended } from './checkpoint-tending.ts';
import { lifeWarning, survivingBases, viewOf } from './checkpoint-view.ts';
import { NO_CHECKPOINTS, resumePoint, withCheckpoint } from './checkpoints.ts';
import { HOUR_MS, ledgerOf, samplerPath, sampling, statePath } from './testing/kept-run.ts';

const NOTHING: Uses = {
  sampler: null,
  published: null,
  savedState: null,
  book: NO_CHECKPOINTS,
  resume: resumePoint(NO_CHECKPOINTS),
  final: null,
  isPromoted: false,
};
const bookOf = (...steps: number[]) =>
  steps.reduce((book, step) => withCheckpoint(book, { step, statePath: statePath(step), samplerPath: samplerPath(step) }), NO_CHECKPOINTS);
const pinned = (pins: Pins) => Object.fromEntries([...pins].map(([path, why]) => [path.replace('tinker://m/', ''), why]));
const pinning = (...paths: SavedPath[]): Pins => new Map(paths.map((path) => [path, ['last'] as Pin[]]));
const NO_ANSWER: TendResult = { renewed: [], removed: [], found: [], isListRead: true };
const RULES = { ttlSeconds: null, keepLast: null };

describe('what is pinned', () => {
  it('the newest state, what is sampled from, and the state before it: where a tripwire stop would go back to', () => {
    const book = bookOf(1, 2, 3);
    const uses = { ...NOTHING, sampler: sampling(3), published: sampling(3), savedState: statePath(3), book, resume: resumePoint(book) };
    expect(pinned(pinsOf(ledgerOf([1, 2, 3]), uses))).toEqual({
      'weights/step-0002': ['resume'],
      'sampler_weights/step-0002': ['resume'],
      'weights/step-0003': ['last', 'resume'],
      'sampler_weights/step-0003': ['in use', 'resume'],
    });
  });

  it('the weights of the best interim rate, of equal ones the last; one that measured nothing changes nothing', () => {
    const measured = [
      [1, 0.4],
      [2, 0.6],
      [3, 0.6],
      [4, null],
      [5, 0.5],
    ] as const;
    const ledger = measured.reduce((ledger, [step, rate]) => withMeasured(ledger, step, rate), ledgerOf([1, 2, 3, 4, 5, 6]));
    expect(ledger.best).toEqual({ step: 3, solveRate: 0.6 });
    expect(
      Object.entries(pinned(pinsOf(ledger, NOTHING)))
        .filter(([, why]) => why.includes('best'))
        .map(([path]) => path),
    ).toEqual(['sampler_weights/step-0003', 'weights/step-0003']);
  });

  it('final weights, promoted ones once an adapter names them; nothing that is gone', () => {
    const final = { statePath: statePath(2), samplerPath: samplerPath(2) };
    const kept = (isPromoted: boolean) => pinned(pinsOf(ledgerOf([1, 2]), { ...NOTHING, final, isPromoted }));
    expect(kept(false)['sampler_weights/step-0002']).toEqual(['final']);
    expect(kept(true)['sampler_weights/step-0002']).toEqual(['promoted']);
    const gone = withChanged(ledgerOf([1, 2]), (entry) => ({ ...entry, gone: { atMs: 0, by: 'sweep' } }));
    expect(pinsOf(gone, { ...NOTHING, final }).size).toBe(0);
  });
});

describe('what the service says', () => {
  const [ledger, path] = [ledgerOf([1], 2 * HOUR_MS), statePath(1)];
  const lookedAt = (found: TendResult['found']) =>
    withTended(ledger, { look: [path], renew: [], remove: [] }, { ...NO_ANSWER, found }, 2 * HOUR_MS).entries.find(
      (entry) => entry.path === path,
    ) as LedgerEntry;

  it('counts more than what was asked for; where it says nothing that stands', () => {
    expect(lookedAt([{ path, isListed: true, expires: 7 * HOUR_MS }]).expires).toBe(7 * HOUR_MS);
    expect(lookedAt([{ path, isListed: true, expires: null }]).expires).toBe(null);
    expect(lookedAt([{ path, isListed: true, expires: 'unknown' }]).expires).toBe(3 * HOUR_MS);
    expect(lookedAt([]).expires).toBe(3 * HOUR_MS);
    expect(ledgerOf([1]).entries[0]?.expires).toBe('unknown');
  });

  it('a list that never showed a path says nothing by not showing it, until its time is over', () => {
    const unlisted = [{ path, isListed: false, expires: 'unknown' as const }];
    expect(lookedAt(unlisted)).toMatchObject({ seen: 'not listed', gone: null });
    const order = { look: [path], renew: [], remove: [] };
    const goneOf = (was: LedgerEntry['seen'], nowMs: number) =>
      withTended(
        withChanged(ledger, (entry) => ({ ...entry, seen: was })),
        order,
        { ...NO_ANSWER, found: unlisted },
        nowMs,
      ).entries[1]?.gone;
    expect(goneOf('not listed', 3 * HOUR_MS - 1)).toBeNull();
    expect(goneOf('not listed', 3 * HOUR_MS)).toMatchObject({ by: 'expiry' });
    expect(goneOf('listed', 2 * HOUR_MS)).toMatchObject({ by: 'expiry' });
  });

  it('a list that could not be read leaves everything to be asked for again', () => {
    const plan = tendPlan(ledger, pinning(), RULES, 2 * HOUR_MS);
    const after = withTended(ledger, plan, { ...NO_ANSWER, isListRead: false }, 2 * HOUR_MS);
    expect(tendPlan(after, pinning(), RULES, 2 * HOUR_MS).look).toEqual(plan.look);
  });

  it('a life that stays as it was though the call was taken counts as refused', () => {
    const pins = pinning(path);
    const plan = tendPlan(ledger, pins, RULES, 2 * HOUR_MS);
    expect(plan.renew).toEqual([{ path, ttlSeconds: 30 * 24 * 3600, isCut: false }]);
    const renewed = [{ path, outcome: 'done' as const, words: '' }];
    const found = [{ path, isListed: true, expires: 3 * HOUR_MS }];
    const after = withTended(ledger, plan, { ...NO_ANSWER, renewed, found }, 2 * HOUR_MS);
    expect(after.entries[1]?.renewal).toMatchObject({ outcome: 'refused' });
    expect(tendPlan(after, pins, RULES, 2.9 * HOUR_MS).renew).toEqual([]);
  });
});

describe('lives', () => {
  it('half of it passes before a renewal; final weights never expire, from the moment they are final', () => {
    const ledger = ledgerOf([0], 2 * HOUR_MS);
    const renewed = (pin: Pin, nowMs: number) =>
      tendPlan(ledger, new Map([[statePath(0), [pin]]]), RULES, nowMs).renew.map(({ ttlSeconds }) => ttlSeconds);
    expect(renewed('last', HOUR_MS - 1)).toEqual([]);
    expect(renewed('last', HOUR_MS)).toEqual([30 * 24 * 3600]);
    expect(renewed('final', 0)).toEqual([null]);
    expect(renewed('promoted', 0)).toEqual([null]);
  });

  it('what was renewed and is not needed any more gets the configured life back, once', () => {
    const rules = { ttlSeconds: 7200, keepLast: null };
    const renewal = { atMs: 0, outcome: 'done', words: '' } as const;
    const ledger = withChanged(ledgerOf([0], 7_200_000), (entry) => ({ ...entry, renewal, expires: 700 * HOUR_MS }));
    const plan = tendPlan(ledger, pinning(), rules, HOUR_MS);
    expect(plan.renew[0]).toEqual({ path: samplerPath(0), ttlSeconds: 7200, isCut: true });
    const done = plan.renew.map(({ path }) => ({ path, outcome: 'done' as const, words: '' }));
    const after = withTended(ledger, plan, { ...NO_ANSWER, renewed: done }, HOUR_MS);
    expect(after.entries[0]).toMatchObject({ expires: 3 * HOUR_MS, renewal: { outcome: 'cut' } });
    expect(tendPlan(after, pinning(), rules, 2 * HOUR_MS).renew).toEqual([]);
  });

  it('a failed renewal is tried again, sooner and sooner, until the time is over', () => {
    const renewal = { atMs: HOUR_MS, outcome: 'failed', words: 'busy' } as const;
    const ledger = withChanged(ledgerOf([0], 2 * HOUR_MS), (entry) => ({ ...entry, renewal }));
    const isDue = (nowMs: number) => tendPlan(ledger, pinning(statePath(0)), RULES, nowMs).renew.length > 0;
    expect([isDue(HOUR_MS + 899_000), isDue(HOUR_MS + 900_000)]).toEqual([false, true]);
  });

  it('a run that ends leaves a long life to what it needs', () => {
    const ledger = ledgerOf([0], 2 * HOUR_MS);
    const renewed = (isEnding: boolean) => tendPlan(ledger, pinning(statePath(0)), RULES, 0, isEnding).renew.map(({ path }) => path);
    expect(renewed(false)).toEqual([]);
    expect(renewed(true)).toEqual([statePath(0)]);
  });

  it('are asked for in seconds, and not at all where the config has none', () => {
    expect(saveLife({ checkpoints: { ttl_days: 0.5, keep_last: null } })).toEqual({ ttlSeconds: 43_200 });
    expect(saveLife({ checkpoints: { ttl_days: null, keep_last: null } })).toEqual({});
  });
});

describe('what goes', () => {
  it('all but the newest of each kind and the pinned; not what the service refuses to delete', () => {
    const paths = (refused: readonly SavedPath[]) => {
      const ledger = withChanged(ledgerOf([1, 2, 3, 4]), (entry) =>
        refused.includes(entry.path) ? { ...entry, undeleted: { outcome: 'refused', words: 'no' } } : entry,
      );
      return sweepable(ledger, pinning(statePath(1)), 2).map(({ path }) => path);
    };
    expect(paths([])).toEqual([samplerPath(1), samplerPath(2), statePath(2)]);
    expect(paths([samplerPath(1)])).toEqual([samplerPath(2), statePath(2)]);
  });

  it('a deletion of what is not listed any more is done; another that failed says why and stays', () => {
    const plan = { look: [], renew: [], remove: [statePath(1), samplerPath(1)] };
    const removed = plan.remove.map((path) => ({ path, outcome: 'refused' as const, words: '404' }));
    const found = [{ path: statePath(1), isListed: false, expires: 'unknown' as const }];
    const after = withTended(ledgerOf([1]), plan, { ...NO_ANSWER, removed, found }, 5);
    expect(after.entries).toMatchObject([
      { path: samplerPath(1), gone: null, undeleted: { outcome: 'refused', words: '404' } },
      { path: statePath(1), gone: { atMs: 5, by: 'sweep' } },
    ]);
  });

  it('what nobody needs is gone when its time is over, and is no place to go on from', () => {
    const ended = withEnded(ledgerOf([1, 2], HOUR_MS), ({ path }) => path === statePath(1), 2 * HOUR_MS);
    expect(alive(ended).map(({ path }) => path)).toEqual([statePath(1), samplerPath(2), statePath(2)]);
    const warm = 'tinker://m/weights/warmup' as StatePath;
    const gone: readonly SavedPath[] = [samplerPath(1), statePath(2), warm];
    expect(bookWithout({ ...bookOf(1, 2), warmupState: warm }, (path) => gone.includes(path))).toEqual({
      checkpoints: [{ step: 1, statePath: statePath(1), samplerPath: null }],
      warmupState: null,
    });
  });

  it('the oldest lines are dropped and counted when there are too many, never a needed one', () => {
    const ledger = ledgerOf(Array.from({ length: 600 }, (_, step) => step));
    const small = compacted(ledger, ({ path }) => path === statePath(0));
    expect(small.entries).toHaveLength(400);
    expect(small.entries[0]?.path).toBe(statePath(0));
    expect(small.dropped).toBe(800);
  });
});

describe('what a rebuild would start from', () => {
  it('the states that are left, the best first, then the base model', () => {
    const bases = (atMs: number) => survivingBases(ledgerOf([1, 2], 3 * HOUR_MS), atMs).map(({ name }) => name);
    expect(bases(3 * HOUR_MS)).toEqual(['step-0002', 'step-0001', 'base model']);
    expect(bases(4 * HOUR_MS)).toEqual(['step-0002', 'base model']);
    expect(bases(5 * HOUR_MS)).toEqual(['base model']);
  });

  it('is in the warning of what cannot be kept, with when it ends and why; nothing is warned of that is renewed', () => {
    const renewal = { atMs: 0, outcome: 'refused', words: '404: no such call' } as const;
    const refused = (path: SavedPath) =>
      withChanged(ledgerOf([1, 2], 3 * HOUR_MS), (entry) => (entry.path === path ? { ...entry, renewal } : entry));
    const pins = pinning(statePath(1), statePath(2));
    expect(lifeWarning(ledgerOf([1, 2], 3 * HOUR_MS), pins, 0)).toBeNull();
    expect(lifeWarning(refused(statePath(2)), pins, 0)).toBe(
      'step-0002 (state) will expire, the first at 1970-01-01T05:00:00.000Z: the service does not renew it (404: no such call). ' +
        'A run that still waits then goes on from the training state step-0001 (tinker://m/weights/step-0001).',
    );
    expect(lifeWarning(refused(statePath(2)), pins, 5 * HOUR_MS)).toBeNull();
  });
});

it('the view has times as text, and tells never from unknown', () => {
  const ledger = withChanged(ledgerOf([1, 2], HOUR_MS), (entry) =>
    entry.step === 1 ? { ...entry, expires: entry.kind === 'state' ? null : 'unknown' } : entry,
  );
  const view = viewOf(ledger, pinning(statePath(2)), { ttlSeconds: 3600, keepLast: 1 }, 2 * HOUR_MS);
  expect(view.rows.map(({ name, kind, expiresAt, pinned, wouldSweep }) => [name, kind, expiresAt, pinned, wouldSweep])).toEqual([
    ['step-0001', 'sampler', 'unknown', [], true],
    ['step-0001', 'state', null, [], true],
    ['step-0002', 'sampler', '1970-01-01T03:00:00.000Z', [], false],
    ['step-0002', 'state', '1970-01-01T03:00:00.000Z', ['last'], false],
  ]);
  expect(view.nextRenewalAt).toBe('1970-01-01T02:30:00.000Z');
});
