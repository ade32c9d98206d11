import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyBatch, tightLimits, wideLimits } from '../../test/support/any-episode.ts';
import { at } from '../lists.ts';
import { type AdvantageOptions, computeAdvantages } from './advantages.ts';
import { buildDatums } from './datums.ts';
import type { Datum, Episode } from './span.ts';
import { keepTeacherRow } from './teacher-row.ts';
import { datumName, TokenError } from './token-error.ts';
import { buildTopkReplicas, type TopkRow } from './topk.ts';
import { toWire } from './wire.ts';

const RUNS = { numRuns: 400 };
const lossPositions = (datum: Datum) => [...datum.mask.keys()].filter((p) => datum.mask[p] === 1);
/** What a teacher says of a token, from its id and place only: the same for a datum wherever it stands in a batch. */
const scoreOf = (datum: Datum, p: number) => -((((datum.tokens[p] ?? 0) * 7 + p * 3) % 11) / 4);
/** A teacher's answer: every token has a score, first ones and context too. */
const answerOf = (datum: Datum) => Array.from(datum.tokens, (_, p) => scoreOf(datum, p));
const rowsOf = (datums: readonly Datum[]) => datums.map((datum) => keepTeacherRow(datum, answerOf(datum)));

const options: fc.Arbitrary<AdvantageOptions> = fc.record({
  advantageClip: fc.option(fc.double({ min: 0.01, max: 3, noNaN: true })),
  centerAdvantages: fc.boolean(),
});
/** How the answer for one datum of a batch may be spoiled. */
const spoiling = fc.constantFrom<('none' | 'missing' | 'infinite' | 'short' | 'long')[]>(
  'none',
  'none',
  'none',
  'missing',
  'infinite',
  'short',
  'long',
);

it('every kept datum has exactly one finite score per loss position, and every other is counted as dropped', () => {
  fc.assert(
    fc.property(anyBatch, options, fc.infiniteStream(spoiling), (episodes, how, spoilings) => {
      const { datums } = buildDatums(episodes, wideLimits);
      const rows = rowsOf(datums).map((row, d) => spoiled(row, at(datums, d), spoilings.next().value));
      const { kept, advantages, stats } = computeAdvantages(datums, rows, how);
      const usable = datums.filter((datum, d) => {
        const row = at(rows, d);
        const scored = [...row.keys()].filter((p) => Number.isFinite(row[p]));
        return row.length === datum.tokens.length && String(scored) === String(lossPositions(datum));
      });
      expect(kept).toEqual(usable);
      expect(stats.mismatchDrops).toBe(datums.length - usable.length);
      toWire('importance_sampling', kept, advantages).forEach((wire, k) => {
        const { tokens } = at(kept, k);
        for (const list of [wire.modelInput, wire.targetTokens, wire.logprobs, wire.advantages])
          expect(list.length).toBe(tokens.length - 1);
        expect(wire.advantages.every(Number.isFinite) && wire.logprobs.every(Number.isFinite)).toBe(true);
        const outside = [...wire.advantages.keys()].filter((i) => at(kept, k).mask[i + 1] === 0 && wire.advantages[i] !== 0);
        expect(outside).toEqual([]);
      });
    }),
    RUNS,
  );
});

it('a teacher that leaves out a loss position is an error; what it says elsewhere is never looked at', () => {
  fc.assert(
    fc.property(anyBatch, fc.nat(), fc.anything(), (episodes, pick, anything) => {
      for (const datum of buildDatums(episodes, wideLimits).datums) {
        const answer: (number | null | undefined)[] = answerOf(datum);
        const garbled = answer.map((score, p) => (p > 0 && datum.mask[p] === 1 ? score : (anything as number)));
        expect(keepTeacherRow(datum, garbled)).toEqual(keepTeacherRow(datum, answer));
        const positions = lossPositions(datum).filter((p) => p > 0);
        const missing = positions[pick % positions.length];
        if (missing === undefined) continue;
        answer[missing] = null;
        expect(() => keepTeacherRow(datum, answer)).toThrow(TokenError);
      }
    }),
    RUNS,
  );
});

it('each loss position of a top-k batch weighs exactly 1 over its replicas, every context position 0', () => {
  fc.assert(
    fc.property(anyBatch, fc.integer({ min: 1, max: 4 }), (episodes, k) => {
      const { datums } = buildDatums(episodes, wideLimits);
      const { replicas, stats } = buildTopkReplicas(
        datums,
        datums.map((datum) => candidatesOf(datum, k)),
        k,
      );
      expect(replicas.length).toBe((datums.length - stats.mismatchDrops) * k);
      for (let source = 0; source < datums.length; source++) {
        const own = replicas.filter((replica) => replica.source === source);
        at(datums, source).mask.forEach((isLoss, p) => {
          const weight = own.reduce((sum, { targetWeights }) => sum + (targetWeights[p] ?? Number.NaN), 0);
          if (own.length > 0) expect(weight).toBeCloseTo(isLoss, 9);
        });
      }
    }),
    RUNS,
  );
});

it('the order of a batch changes neither datums nor advantages, and sums only in their last bits', () => {
  fc.assert(
    fc.property(
      anyBatch.chain((episodes) => fc.tuple(fc.constant(episodes), fc.shuffledSubarray(episodes, { minLength: episodes.length }))),
      options,
      ([episodes, reordered], how) => {
        const [one, other] = [trained(episodes, how), trained(reordered, how)];
        expect(other.built).toEqual(one.built);
        expect([...other.byName.keys()].sort()).toEqual([...one.byName.keys()].sort());
        for (const [name, { datum, advantages }] of one.byName) {
          expect(other.byName.get(name)?.datum).toEqual(datum);
          other.byName.get(name)?.advantages.forEach((value, p) => {
            expect(value).toBeCloseTo(advantages[p] ?? Number.NaN, 9);
          });
          if (!how.centerAdvantages) expect(other.byName.get(name)?.advantages).toEqual(advantages);
        }
        const { advantageMean, advantageStd, nonZeroTokens: _, ...counts } = one.stats;
        expect(other.stats).toMatchObject(counts);
        const close = (a: number | null, b: number | null) => (a === null || b === null ? expect(a).toBe(b) : expect(a).toBeCloseTo(b, 9));
        close(other.stats.advantageMean, advantageMean);
        close(other.stats.advantageStd, advantageStd);
        close(other.kl, one.kl);
      },
    ),
    RUNS,
  );
});

function trained(episodes: readonly Episode[], how: AdvantageOptions) {
  const { datums, stats: built } = buildDatums(episodes, tightLimits);
  const { kept, advantages, stats, reverseKlNatsPerToken: kl } = computeAdvantages(datums, rowsOf(datums), how);
  const byName = new Map(kept.map((datum, i) => [datumName(datum), { datum, advantages: at(advantages, i) }]));
  return { built, stats, kl, byName };
}

function spoiled(row: Float64Array, datum: Datum, how: 'none' | 'missing' | 'infinite' | 'short' | 'long'): Float64Array {
  if (how === 'short') return row.slice(1);
  if (how === 'long') return Float64Array.from([...row, -1]);
  const last = lossPositions(datum).at(-1);
  if (how === 'none' || last === undefined) return row;
  return row.with(last, how === 'missing' ? Number.NaN : Number.NEGATIVE_INFINITY);
}

/** One to k candidates at each loss position; at context more than that, none of them usable. */
function candidatesOf(datum: Datum, k: number): TopkRow {
  const width = k + 1;
  const counts = Int32Array.from(datum.mask, (isLoss, p) => (isLoss === 1 ? 1 + (p % k) : width));
  const logprobs = Float64Array.from({ length: width * datum.mask.length }, (_, i) =>
    datum.mask[Math.floor(i / width)] === 1 ? -(i % 5) : Number.NaN,
  );
  return { width, counts, tokens: Int32Array.from(logprobs, (_, i) => i % 97), logprobs };
}
