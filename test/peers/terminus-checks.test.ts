import { expect, test } from 'vitest';
import type { TrialRecord } from '../../services/gateway/index.ts';
import type { TrialRun } from '../../services/harbor/index.ts';
import { checkFolder, checkPlayed, type Played } from './terminus-checks.ts';

const GAME = { name: 'game', ends: ['max_turns'], contextLimitTokens: 20 };

/** Two calls, the second of which was cut off: prompt 1 2, said 3 4; prompt 1 2 3 4 5, said 6. */
function played(): { -readonly [Key in keyof Played]: Played[Key] } {
  const first = {
    callIndex: 0,
    prompt: ids(1, 2),
    sampled: ids(3, 4),
    logprobs: Float64Array.of(-1, -2),
    stop: 'stop',
    sampler: 'base',
  } as const;
  const second = {
    callIndex: 1,
    prompt: ids(1, 2, 3, 4, 5),
    sampled: ids(6),
    logprobs: Float64Array.of(-3),
    stop: 'length',
    sampler: 'base',
  } as const;
  const spans = [first, second];
  const record = { spans, fragments: { first: 1 }, sampledTokens: 3, lengthStops: 1 } as unknown as TrialRecord;
  const turns = [{ callIndex: 0, prompt: first.prompt, sampled: first.sampled, logprobs: first.logprobs }];
  const run = { executed: true, stopReason: 'max_turns', infraReason: null, rollout: { turns, problem: null } } as unknown as TrialRun;
  const issued = spans.map(({ sampled, logprobs, stop }) => ({
    tokens: sampled,
    logprobs: Float32Array.from(logprobs),
    stop,
    promptCacheHitTokens: 0,
  }));
  return { run, record, issued, whole: ids(1, 2, 3, 4, 5, 6), rescored: Float64Array.of(Number.NaN, -9, -1, -2, -9, -3) };
}

const ids = (...values: number[]) => Int32Array.from(values);
const failing = (game: Played, of = GAME) =>
  checkPlayed(of, game)
    .filter(({ problem }) => problem !== null)
    .map(({ what }) => what);

test('a faithful game passes', () => {
  expect(failing(played())).toEqual([]);
});

test.each<[string, (game: ReturnType<typeof played>) => Played, string]>([
  [
    'an id that the server did not issue',
    (game) => ({ ...game, issued: game.issued.with(0, { ...game.issued[0], tokens: ids(3, 5) } as never) }),
    'the server’s',
  ],
  ['an answer that is not recorded', (game) => ({ ...game, issued: [...game.issued, game.issued[0] as never] }), 'the server’s'],
  [
    'a second fragment',
    (game) => ({ ...game, record: { ...game.record, fragments: { first: 1, branch: 1 } } }),
    'every prompt is the one before',
  ],
  ['scores of another sequence', (game) => ({ ...game, rescored: game.rescored.map((score) => score - 2) }), 'scored again'],
  ['a score that is missing', (game) => ({ ...game, rescored: game.rescored.subarray(0, 5) }), 'scored again'],
  ['another end', (game) => ({ ...game, run: { ...game.run, stopReason: 'error' } }), 'ends by max_turns'],
  [
    'a turn that harbor has otherwise',
    (game) => ({ ...game, run: { ...game.run, rollout: { turns: [], problem: null } } }),
    'harbor recorded',
  ],
])('%s is found', (_name, alter, what) => {
  expect(failing(alter(played()))).toEqual([expect.stringContaining(what)]);
});

test('a call beyond the window is found, and one call alone shows nothing', () => {
  expect(failing(played(), { ...GAME, contextLimitTokens: 5 })).toEqual([expect.stringContaining('the window holds')]);
  const game = played();
  const record = { ...game.record, spans: game.record.spans.slice(0, 1) };
  expect(failing({ ...game, record, issued: game.issued.slice(0, 1) })).toEqual([expect.stringContaining('calls enough')]);
});

test('a sandbox or a key that is left is found', () => {
  expect(checkFolder({ sandboxes: [], files: 'a b', keys: ['c'] }).every(({ problem }) => problem === null)).toBe(true);
  expect(checkFolder({ sandboxes: ['sandbox-1'], files: 'a b', keys: ['b', 'c'] }).map(({ problem }) => problem)).toEqual([
    'sandbox-1',
    '1 of 2 are',
  ]);
});
