import { describe, expect, it } from 'vitest';
import type { DecisionRecord } from './decision.ts';
import { keptDecisions, MAX_REFUSED, MOST_DECISION_BYTES, MOST_REFUSED_BYTES, refusedLine } from './decision-book.ts';

const line = (over: Partial<DecisionRecord> = {}): DecisionRecord => ({
  message: 'pause',
  by: 'tester',
  via: 'temporal',
  reason: null,
  at: '2026-01-01T00:00:00.000Z',
  waitId: null,
  applied: true,
  refusal: null,
  answer: null,
  ...over,
});
const refused = (over: Partial<DecisionRecord> = {}) =>
  refusedLine(line({ applied: false, refusal: 'pause: the run is paused already', ...over }));
const many = (count: number, make: (index: number) => DecisionRecord) => Array.from({ length: count }, (_, index) => make(index));
const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length;

describe('the book of decisions', () => {
  it('is kept as it is while it is short', () => {
    const book = [line({ reason: 'r'.repeat(2000) }), refused(), line({ message: 'resume', waitId: 'pause-1' })];
    expect(keptDecisions(book)).toEqual(book);
  });

  it('keeps the newest refused messages, with the beginning of what they say', () => {
    const kept = keptDecisions(many(60, (index) => refused({ at: `${index}`, reason: 'r'.repeat(2000) })));
    expect(kept.map(({ at }) => Number(at))).toEqual(Array.from({ length: MAX_REFUSED }, (_, index) => index + 10));
    expect(kept[0]?.reason).toBe(`${'r'.repeat(499)}…`);
  });

  it('keeps the newest decisions, and old answers before newer decisions that answer nothing', () => {
    const answers = many(3, (index) => line({ waitId: `pause-${index}`, message: 'resume' }));
    const pauses = many(300, (index) => line({ at: `${index}`, reason: 'r'.repeat(2000) }));
    const kept = keptDecisions([...answers, ...pauses]);
    expect(kept.slice(0, 3)).toEqual(answers);
    expect(kept.length).toBeGreaterThan(60);
    expect(kept.slice(3)).toEqual(pauses.slice(3 - kept.length));
  });

  it('stays small whatever people write', () => {
    const longest = { by: '\u0001'.repeat(200), via: '\u0001'.repeat(200), reason: '\u0001'.repeat(2000) };
    const kept = keptDecisions([
      ...many(500, () => refused({ ...longest, refusal: '一'.repeat(2000) })),
      ...many(500, () => line(longest)),
    ]);
    expect(kept.filter(({ applied }) => applied).length).toBeGreaterThan(5);
    expect(kept.filter(({ applied }) => !applied).length).toBeGreaterThan(5);
    expect(bytesOf(kept)).toBeLessThan(MOST_DECISION_BYTES + MOST_REFUSED_BYTES);
  });
});
