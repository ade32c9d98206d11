import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TrialId } from '../ids.ts';
import { computeAdvantages } from './advantages.ts';
import { buildDatums } from './datums.ts';
import { decodeEpisode, encodeEpisode } from './episode-codec.ts';
import { decodeScoredEpisode, encodeScoredEpisode } from './scored-codec.ts';
import type { Datum, Episode, Span } from './span.ts';
import { keepTeacherRow } from './teacher-row.ts';
import { TokenError } from './token-error.ts';
import { toWire } from './wire.ts';

const trial = 'run-a-t0' as TrialId;
const wide = { contextBudgetTokens: 65536, maxDatumTokens: 65536 };
const span = (callIndex: number, prompt: number[], sampled: number[], logprobs: number[]): Span => ({
  callIndex,
  prompt: Int32Array.from(prompt),
  sampled: Int32Array.from(sampled),
  logprobs: Float64Array.from(logprobs),
  stop: 'stop',
  sampler: 'step-0003',
});
const datum = (tokens: number[], mask: number[], logprobs: number[]): Datum => ({
  trial,
  fragment: 0,
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(mask),
  logprobs: Float64Array.from(logprobs),
});
const plain = { advantageClip: null, centerAdvantages: false };

/** Episodes with clean turns, broken prefixes, empty samples and unusable log-probabilities. */
const episodes: fc.Arbitrary<Episode> = fc
  .array(
    fc.record({
      glue: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 4 }),
      keepsPrefix: fc.boolean(),
      sampled: fc.array(
        fc.tuple(fc.integer({ min: 0, max: 3 }), fc.oneof(fc.double({ min: -9, max: 0, noNaN: true }), fc.constant(Number.NaN))),
        {
          maxLength: 4,
        },
      ),
      stop: fc.constantFrom('stop' as const, 'length' as const),
    }),
    { maxLength: 6 },
  )
  .map((turns) => {
    const spans: Span[] = [];
    let seen: number[] = [];
    turns.forEach(({ glue, keepsPrefix, sampled, stop }, i) => {
      const prompt = [9, ...(keepsPrefix ? seen.slice(1) : []), ...glue];
      const tokens = sampled.map(([token]) => token);
      const logprobs = sampled.map(([, logprob]) => logprob);
      spans.push({ ...span(i, prompt, tokens, logprobs), stop });
      seen = [...prompt, ...tokens];
    });
    return { trial, spans, stopReason: null };
  });

describe('datums', () => {
  it('masks a token whose log-probability is unusable, counts it, and drops a sequence with no other', () => {
    const spans = [span(0, [1, 2], [3, 4], [Number.NaN, -0.5]), span(1, [7], [8], [Number.NaN])];
    const { datums, stats } = buildDatums([{ trial, spans, stopReason: null }], wide);
    expect(datums).toEqual([datum([1, 2, 3, 4], [0, 0, 0, 1], [0, 0, 0, -0.5])]);
    expect(stats).toMatchObject({ datums: 1, fragments: 0, lossTokens: 1, contextTokens: 3, maskedTokens: 1 });
  });

  it('refuses a span with unequal lists and names its trial and call', () => {
    const bad = { trial, spans: [span(4, [1], [2, 3], [-0.1])], stopReason: null };
    expect(() => buildDatums([bad], wide)).toThrow(/trial run-a-t0, call 4: 2 sampled tokens but 1 log-prob/);
  });

  it('trains exactly the sampled tokens with a usable log-probability, each once and unchanged', () => {
    fc.assert(
      fc.property(episodes, (episode) => {
        const { datums, stats } = buildDatums([episode], wide);
        const trained = datums.flatMap((d) =>
          [...d.tokens].map((token, p) => [token, d.logprobs[p], d.mask[p]]).filter(([, , isLoss]) => isLoss),
        );
        const sampled = episode.spans.flatMap((s) => [...s.sampled].map((token, i) => [token, s.logprobs[i], 1]));
        expect(trained).toEqual(sampled.filter(([, logprob]) => Number.isFinite(logprob)));
        expect(stats.lossTokens).toBe(trained.length);
        expect(datums.map((d) => d.fragment)).toEqual(datums.map((_, i) => i));
      }),
    );
  });
});

describe('teacher rows and advantages', () => {
  it.each([
    ['missing', null],
    ['NaN', Number.NaN],
    ['infinite', Number.NEGATIVE_INFINITY],
    ['undefined', undefined],
  ])('a score that is %s at a loss position is an error that names the datum', (_, value) => {
    expect(() => keepTeacherRow(datum([1, 2], [0, 1], [0, -1]), [null, value])).toThrow(
      expect.objectContaining({ code: 'missing_at_loss_position', where: 'datum run-a-t0#0' }),
    );
  });

  it('scores at context positions never reach the reverse KL of a run', () => {
    const d = datum([10, 11, 1, 2, 50, 3], [0, 0, 1, 1, 0, 1], [0, 0, -0.5, -0.25, 0, -1]);
    const row = keepTeacherRow(d, [null, -9, -0.4, -1.25, -7, -3.5]);
    expect(computeAdvantages([d], [row], plain).reverseKlNatsPerToken).toBeCloseTo(1.13333, 5);
  });

  it('drops and counts a datum with a loss token at position 0, even where the teacher sent a value', () => {
    const d = datum([1, 2], [1, 1], [-0.1, -0.2]);
    const { kept, stats } = computeAdvantages([d], [Float64Array.of(-0.7, -0.5)], plain);
    expect(kept).toEqual([]);
    expect(stats.mismatchDrops).toBe(1);
  });

  it('counts the tokens that would move the weights', () => {
    const d = datum([1, 2, 3], [0, 1, 1], [0, -0.1, -0.2]);
    expect(computeAdvantages([d], [Float64Array.of(Number.NaN, -0.1, -0.3)], plain).stats.nonZeroTokens).toBe(1);
    expect(computeAdvantages([d], [Float64Array.of(Number.NaN, -0.1, -0.2)], plain).stats.nonZeroTokens).toBe(0);
  });

  it('refuses advantages of the wrong length', () => {
    expect(() => toWire('ppo', [datum([1, 2, 3], [0, 1, 1], [0, -1, -1])], [new Float64Array(2)])).toThrow(/2 advantages for 3 tokens/);
  });
});

describe('codec', () => {
  it('gives an episode back', () => {
    fc.assert(
      fc.property(episodes, (episode) => {
        expect(decodeEpisode(encodeEpisode(episode))).toEqual(episode);
      }),
    );
  });

  it('gives a scored episode back', () => {
    fc.assert(
      fc.property(episodes, (episode) => {
        const { datums } = buildDatums([episode], wide);
        const rows = datums.map((d) =>
          keepTeacherRow(
            d,
            Array.from(d.tokens, (token, p) => -token - p / 7),
          ),
        );
        expect(decodeScoredEpisode(encodeScoredEpisode({ trial, datums, rows }))).toEqual({ trial, datums, rows });
      }),
    );
  });

  it('reads bytes that start at an odd address', () => {
    const episode = { trial, spans: [span(0, [1, 2], [3], [-0.5])], stopReason: 'submitted' };
    const bytes = encodeEpisode(episode);
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    expect(decodeEpisode(shifted.subarray(3))).toEqual(episode);
  });

  it('grows with the new tokens of a conversation, not with the square of its turns', () => {
    const spans: Span[] = [];
    let seen: number[] = [];
    for (let i = 0; i < 40; i++) {
      const prompt = [...seen, ...new Array(50).fill(i)];
      spans.push(span(i, prompt, new Array(50).fill(1), new Array(50).fill(-0.1)));
      seen = [...prompt, ...new Array(50).fill(1)];
    }
    expect(encodeEpisode({ trial, spans, stopReason: null }).length).toBeLessThan(40 * 50 * (4 + 4 + 8) + 4096);
  });

  it('notices any damaged byte, a cut and a foreign version', () => {
    const bytes = encodeEpisode({ trial, spans: [span(0, [1, 2], [3, 4], [-0.5, -0.25])], stopReason: null });
    for (let i = 0; i < bytes.length; i++) {
      const damaged = bytes.slice();
      damaged[i] = (damaged[i] as number) ^ 0x10;
      expect(() => decodeEpisode(damaged), `byte ${i}`).toThrow(TokenError);
    }
    for (let n = 0; n < bytes.length; n++) expect(() => decodeEpisode(bytes.subarray(0, n)), `cut to ${n}`).toThrow(TokenError);
    const newer = bytes.slice();
    newer[4] = 2;
    expect(() => decodeEpisode(newer)).toThrow(/its version is 2, this program reads version 1/);
    expect(() => decodeScoredEpisode(bytes)).toThrow(/starts with "SREP" instead of "SRSC"/);
  });
});
