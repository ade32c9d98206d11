import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { episodeVolume, rolloutMeters } from '../measures/billing.ts';
import { METERS } from '../measures/meters.ts';
import { type Pricing, spendOf } from '../measures/spend.ts';
import { mostTokens, type TrialUse, tokenPrices } from './trial-limit.ts';

const priced = (usdPerMtok: number): Pricing => Object.fromEntries(METERS.map((meter) => [meter, usdPerMtok])) as Pricing;
/** A dollar a token, cached ones 0.2. */
const PRICES = tokenPrices({ ...priced(1e6), student_cached_prefill: null }, 'student', null);
const ids = (length: number, start = 0) => Int32Array.from({ length }, (_, index) => start + index);
const use = (known: Partial<TrialUse>): TrialUse => ({
  spans: [],
  inFlight: [],
  wasted: { promptTokens: 0, sampledTokens: 0 },
  prompt: ids(4),
  ...known,
});

describe('the most that a call may sample', () => {
  it('is what the prompt leaves, each token being sampled and part of the sequence', () => {
    expect(mostTokens(10, PRICES, use({}))).toBe(3); // 4 for the prompt, 2 each
    expect(mostTokens(4, PRICES, use({}))).toBe(0);
    expect(mostTokens(3, PRICES, use({}))).toBeLessThan(1);
  });

  it('counts a prompt that was sent before as cached', () => {
    const spans = [{ callIndex: 0, prompt: ids(4), sampled: ids(2, 4) }];
    // 6 unique and 2 sampled so far; of the next prompt of 8 two are new, and its first 4 are cached as those of the call before it.
    expect(mostTokens(20, PRICES, use({ spans, prompt: ids(8) }))).toBe(Math.floor((20 - (8 + 2 + 4 * 0.2)) / 2));
  });

  it('leaves room for scores and training where the trial is trained on, and for each replica', () => {
    const train = (loss: 'importance_sampling' | 'topk_ce') => tokenPrices(priced(1e6), 'student', { loss, topk: 3 });
    expect(mostTokens(20, train('importance_sampling'), use({}))).toBe((20 - 4 * 3) / 4);
    expect(mostTokens(32, train('topk_ce'), use({}))).toBe((32 - 4 * 5) / 6);
  });

  it('counts calls under way as if they sampled all that they may and shared nothing', () => {
    const inFlight = [{ promptTokens: 4, maxTokens: 3 }];
    expect(mostTokens(20, PRICES, use({ inFlight }))).toBe((20 - (4 + 3 * 2) - 4) / 2);
  });

  it('counts what was sampled for nobody', () => {
    expect(mostTokens(12, PRICES, use({ wasted: { promptTokens: 1, sampledTokens: 1 } }))).toBe(2); // 12 − 3 − 4
  });

  it('has no end where tokens are free, unless the limit is passed already', () => {
    const free = tokenPrices({ ...priced(0), student_cached_prefill: 1 }, 'student', null);
    expect(mostTokens(1, free, use({}))).toBe(Number.POSITIVE_INFINITY);
  });
});

it('a trial that samples what it may, call after call, alone or at once, never costs more than its limit', () => {
  const call = fc.record({
    newTokens: fc.integer({ min: 0, max: 12 }),
    continues: fc.boolean(),
    wants: fc.integer({ min: 1, max: 20 }),
    uses: fc.double({ min: 0, max: 1, noNaN: true }),
    waits: fc.boolean(),
  });
  const price = fc.integer({ min: 0, max: 5 });
  const prices = fc.record(Object.fromEntries(METERS.map((meter) => [meter, price]))) as fc.Arbitrary<Pricing>;
  fc.assert(
    fc.property(fc.array(call, { maxLength: 25 }), fc.integer({ min: 0, max: 400 }), prices, (calls, limit, usdPerToken) => {
      const pricing = Object.fromEntries(METERS.map((meter) => [meter, (usdPerToken[meter] ?? 0) * 1e6])) as Pricing;
      const train = { loss: 'importance_sampling', topk: 1 } as const;
      const tokens = tokenPrices(pricing, 'student', train);
      const spans: { callIndex: number; prompt: Int32Array; sampled: Int32Array }[] = [];
      const flying: { promptTokens: number; maxTokens: number; land: () => void }[] = [];
      let fresh = 0;
      const some = (count: number) => {
        fresh += 1000;
        return ids(count, fresh);
      };
      for (const one of calls) {
        const last = one.continues ? spans.at(-1) : undefined;
        const before = last ? [...last.prompt, ...last.sampled] : [];
        const prompt = Int32Array.from([...before, ...some(one.newTokens + 1)]);
        const most = mostTokens(limit, tokens, use({ spans, prompt, inFlight: flying }));
        if (most >= 1) {
          const maxTokens = Math.min(one.wants, most);
          const sampled = some(Math.max(1, Math.round(maxTokens * one.uses)));
          const land = () => void spans.push({ callIndex: spans.length, prompt, sampled });
          flying.push({ promptTokens: prompt.length, maxTokens, land });
        }
        if (!one.waits) while (flying.length > 0) flying.pop()?.land();
      }
      while (flying.length > 0) flying.pop()?.land();
      const volume = episodeVolume(spans);
      const follows = { teacher_prefill: volume.uniqueTokens, student_train: volume.uniqueTokens };
      const sampling = spendOf(pricing, rolloutMeters(volume, 'student')).usd;
      expect(sampling + spendOf(pricing, follows).usd).toBeLessThanOrEqual(limit + 1e-6);
    }),
  );
});
