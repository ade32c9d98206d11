import { describe, expect, it } from 'vitest';
import { lostIn, lostMeters, sentIn, usageOf } from './books.ts';
import { type CallAnswer, type CallIntent, decodeEntry, type Entry, encodeEntry } from './entry.ts';
import { callsIn } from './paid-call.ts';
import { Replay } from './replay.ts';

const intent = (index: number, key: string, known: Partial<CallIntent> = {}): Entry => ({
  type: 'intent',
  kind: 'sample',
  who: 'student',
  index,
  answered: index,
  key,
  model: 'm',
  promptTokens: 10,
  mostSampledTokens: 28,
  ...known,
});
const answer = (of: number, text: number, known: Partial<CallAnswer> = {}): Entry => ({
  type: 'answer',
  of,
  sampledTokens: 3,
  cachedTokens: 0,
  resubmissions: 0,
  usable: true,
  detail: { stop: 'stop' },
  columns: [Int32Array.of(text)],
  ...known,
});
const replayOf = (...entries: Entry[]) => new Replay(callsIn(entries));
/** What each call gets: the text of a recorded answer, or null for one that is sampled. All are answered before the next is made. */
const answersTo = (replay: Replay, keys: readonly string[]) =>
  keys.map((key) => {
    const { index, recorded } = replay.take(key);
    replay.settle();
    return [index, recorded ? recorded.outcome.columns[0]?.[0] : null];
  });

it('an entry comes back as it was, log-probabilities to the last bit', () => {
  const columns = [Int32Array.of(1, 127), Float64Array.of(Math.fround(-0.1), Number.NaN), Uint8Array.of(7)];
  const entry = answer(3, 0, { columns });
  expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
  expect(decodeEntry(encodeEntry(intent(2, 'k')))).toEqual(intent(2, 'k'));
  const finished: Entry = { type: 'finished', result: { reward: 1 } };
  expect(decodeEntry(encodeEntry(finished))).toEqual(finished);
});

describe('replay', () => {
  it('answers what was made before, then samples', () => {
    const replay = replayOf(intent(0, 'a'), answer(0, 100), intent(1, 'b'), answer(2, 101));
    expect(answersTo(replay, ['a', 'b', 'c'])).toEqual([
      [0, 100],
      [1, 101],
      [2, null],
    ]);
  });

  it('ends for good at the first difference, however alike the later calls are', () => {
    const replay = replayOf(intent(0, 'a'), answer(0, 100), intent(1, 'b'), answer(2, 101), intent(2, 'c'), answer(4, 102));
    expect(answersTo(replay, ['a', 'x', 'b', 'c'])).toEqual([
      [0, 100],
      [1, null],
      [2, null],
      [3, null],
    ]);
  });

  it('gives no answer before those that came before it', () => {
    const replay = replayOf(intent(0, 'a'), answer(0, 100), intent(1, 'b'), answer(2, 101));
    expect(answersTo(replay, ['b', 'a'])).toEqual([
      [0, null],
      [1, null],
    ]);
  });

  it('gives an answer once: equal calls get theirs in turn, and one more is sampled', () => {
    const replay = replayOf(intent(0, 'a'), answer(0, 100), intent(1, 'a'), answer(2, 101));
    expect(answersTo(replay, ['a', 'a', 'a'])).toEqual([
      [0, 100],
      [1, 101],
      [2, null],
    ]);
  });

  it('calls that were in flight together may come in another order', () => {
    const together = { answered: 0 };
    const replay = replayOf(intent(0, 'a', together), intent(1, 'b', together), answer(1, 101), answer(0, 100));
    const [b, a] = [replay.take('b'), replay.take('a')];
    expect([b, a].map(({ index, recorded }) => [index, recorded?.outcome.columns[0]?.[0]])).toEqual([
      [1, 101],
      [0, 100],
    ]);
  });

  it('a call that was lost is sampled in its place and with its number, and what was in flight beside it is still answered', () => {
    const together = { answered: 0 };
    const replay = replayOf(
      intent(0, 'a', together),
      intent(1, 'b', together),
      answer(1, 101),
      intent(2, 'c', { answered: 1 }),
      answer(3, 102),
    );
    expect(replay.take('a')).toMatchObject({ index: 0, recorded: null });
    expect(answersTo(replay, ['b', 'c'])).toEqual([
      [1, 101],
      [2, 102],
    ]);
  });

  it('an answer that nobody can use is sampled anew', () => {
    const replay = replayOf(intent(0, 'a'), answer(0, 100, { usable: false }));
    expect(answersTo(replay, ['a'])).toEqual([[0, null]]);
  });

  it('a call that was refused and made again gets the answer of the second try', () => {
    const replay = replayOf(intent(0, 'a'), { type: 'refused', of: 0 }, intent(1, 'a', { answered: 0 }), answer(2, 101));
    expect(answersTo(replay, ['a', 'b'])).toEqual([
      [1, 101],
      [2, null],
    ]);
  });

  it('a call that the service has and keeps back is waited for in its place, unless it was answered elsewhere', () => {
    const standing: Entry = { type: 'standing', of: 0, requestId: 'req-0' };
    expect(replayOf(intent(0, 'a'), standing).take('a')).toMatchObject({ index: 0, recorded: null, standing: { place: 0 } });
    expect(replayOf(intent(0, 'a'), standing, answer(0, 100)).take('a')).toMatchObject({ recorded: { place: 0 }, standing: null });
    const lostThenStanding = replayOf(intent(0, 'a'), intent(0, 'a'), { ...standing, of: 1 });
    expect(lostThenStanding.take('a')).toMatchObject({ standing: { place: 1 } });
    expect(replayOf(intent(0, 'a'), standing).take('b')).toMatchObject({ standing: null });
  });

  it('goes on along the way of the attempt that came furthest', () => {
    const first = [intent(0, 'a'), answer(0, 100), intent(1, 'b'), answer(2, 101)];
    const second = [intent(1, 'x'), answer(4, 201), intent(2, 'y'), answer(6, 202)];
    expect(answersTo(replayOf(...first, ...second), ['a', 'x', 'y', 'z'])).toEqual([
      [0, 100],
      [1, 201],
      [2, 202],
      [3, null],
    ]);
  });
});

describe('books', () => {
  const calls = callsIn([
    intent(0, 'a'),
    answer(0, 100, { resubmissions: 1 }),
    intent(1, 'b'),
    intent(2, 'c'),
    { type: 'refused', of: 3 },
    intent(0, 'd', { kind: 'score', who: 'teacher', promptTokens: 40, mostSampledTokens: 1 }),
    answer(5, 0, { sampledTokens: 1, cachedTokens: 15 }),
    intent(3, 'e'),
    { type: 'standing', of: 7, requestId: 'req-0' },
  ]);

  it('what was sent is what was answered', () =>
    expect(sentIn(calls)).toEqual({ promptTokens: 10, sampledTokens: 4, scoredTokens: 40, trainedTokens: 0 }));

  it('lost is what has no answer, and every submission in vain; a refused call and one that stands are not', () =>
    expect(lostIn(calls, 'trial')).toEqual([
      { kind: 'sample', of: 'trial', callIndex: 0, promptTokens: 10, sampledTokens: 28 },
      { kind: 'sample', of: 'trial', callIndex: 1, promptTokens: 10, sampledTokens: 28 },
    ]));

  it('a lost call is booked at all it could have cost', () =>
    expect(lostMeters(calls)).toEqual({ student_prefill: 2 * 38, student_sample: 2 * 28 }));

  it('scores are metered by cache, and not by what they sampled', () =>
    expect(usageOf(calls, 'trial').meters).toEqual({
      student_prefill: 13 + 2 * 38,
      student_sample: 3 + 2 * 28,
      teacher_prefill: 25,
      teacher_cached_prefill: 15,
    }));
});
