import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyBatch, tightLimits, wideLimits } from '../../test/support/any-episode.ts';
import { buildDatums, countTokens } from '../tokens/datums.ts';
import { addVolumes, episodeVolume, rolloutMeters, scoringMeters } from './billing.ts';
import { batchHealth, trialTokens } from './health.ts';
import { addMeters, METERS } from './meters.ts';
import { type Pricing, priceOf, spendOf } from './spend.ts';

const RUNS = { numRuns: 300 };
const total = (list: readonly number[]) => list.reduce((sum, one) => sum + one, 0);
const who = fc.constantFrom('student' as const, 'teacher' as const);
const price = fc.option(fc.double({ min: 0, max: 50, noNaN: true }));
const pricing = fc.record(Object.fromEntries(METERS.map((meter) => [meter, price]))) as fc.Arbitrary<Pricing>;

it("a batch's meters are the sums over its episodes, sampled and scored", () => {
  fc.assert(
    fc.property(anyBatch, who, fc.infiniteStream(fc.nat(100)), (episodes, sampledBy, percents) => {
      const volumes = episodes.map(({ spans }) => episodeVolume(spans));
      const sampled = addMeters(...volumes.map((volume) => rolloutMeters(volume, sampledBy)));
      const whole = rolloutMeters(addVolumes(volumes), sampledBy);
      for (const meter of METERS) expect(sampled[meter] ?? 0).toBe(whole[meter] ?? 0);

      const requests = episodes.map((episode) =>
        buildDatums([episode], wideLimits).datums.map(({ tokens }) => ({
          tokens: tokens.length,
          cacheHits: Math.floor((tokens.length * (percents.next().value ?? 0)) / 100),
        })),
      );
      const scored = addMeters(...requests.map(scoringMeters));
      const inOneBatch = scoringMeters(requests.flat());
      for (const meter of METERS) expect(scored[meter] ?? 0).toBe(inOneBatch[meter] ?? 0);
    }),
    RUNS,
  );
});

it('sampled tokens are the sums over calls, whoever counts them; prompts are billed whole', () => {
  fc.assert(
    fc.property(anyBatch, (episodes) => {
      const calls = episodes.flatMap(({ spans }) => spans);
      const sampledTokens = total(calls.map(({ sampled }) => sampled.length));
      const volume = addVolumes(episodes.map(({ spans }) => episodeVolume(spans)));
      expect(volume.sampledTokens).toBe(sampledTokens);
      expect(batchHealth(episodes.map(({ spans }) => trialTokens(spans))).sampledTokens).toBe(sampledTokens);
      const prompts = total(calls.map(({ prompt }) => prompt.length));
      expect(volume.uniqueTokens + volume.cachedTokens).toBeGreaterThanOrEqual(prompts);
    }),
    RUNS,
  );
});

it('trained tokens are the sums over datums and over episodes, and what was sampled is trained or counted as masked', () => {
  fc.assert(
    fc.property(anyBatch, (episodes) => {
      const { datums, stats } = buildDatums(episodes, tightLimits);
      const parts = episodes.map((episode) => buildDatums([episode], tightLimits).stats);
      expect(stats.lossTokens).toBe(total(datums.map(({ mask }) => total([...mask]))));
      expect(stats.lossTokens + stats.contextTokens).toBe(total(datums.map(({ tokens }) => tokens.length)));
      expect(countTokens(datums)).toEqual({ lossTokens: stats.lossTokens, contextTokens: stats.contextTokens });
      for (const key of ['datums', 'fragments', 'overflowDrops', 'overlongDrops', 'lossTokens', 'contextTokens', 'maskedTokens'] as const)
        expect(stats[key]).toBe(total(parts.map((part) => part[key])));
      const usable = episodes.filter(({ trial }) => datums.some((datum) => datum.trial === trial));
      const sampledTokens = total(usable.flatMap(({ spans }) => spans.map(({ sampled }) => sampled.length)));
      expect(stats.lossTokens + stats.maskedTokens).toBeLessThanOrEqual(sampledTokens);
    }),
    RUNS,
  );
});

it('the cost of a batch is the cost of its episodes, and names the same meters without a price', () => {
  fc.assert(
    fc.property(anyBatch, who, pricing, (episodes, sampledBy, prices) => {
      const meters = episodes.map(({ spans }) => rolloutMeters(episodeVolume(spans), sampledBy));
      const [whole, parts] = [spendOf(prices, addMeters(...meters)), meters.map((one) => spendOf(prices, one))];
      expect(whole.usd).toBeCloseTo(total(parts.map(({ usd }) => usd)), 12);
      expect(new Set(whole.blindTo)).toEqual(new Set(parts.flatMap(({ blindTo }) => blindTo)));
      expect(whole.blindTo.every((meter) => priceOf(prices, meter) === null)).toBe(true);
    }),
    RUNS,
  );
});
