import { seededRandom, shuffled } from '../../core/random/seeded.ts';

/**
 * Gives every loss token another token's advantage: the same numbers, no lesson. Zeroes (context) stay where they are, so that what
 * is trained on is the same tokens.
 */
export function permuteAdvantages(advantages: readonly Float64Array[]): readonly Float64Array[] {
  const places = advantages.flatMap((row, d) => [...row].flatMap((advantage, i) => (advantage === 0 ? [] : [{ d, i, advantage }])));
  const dealt = shuffled(places, seededRandom(BigInt(places.length)));
  const permuted = advantages.map((row) => new Float64Array(row.length));
  places.forEach(({ d, i }, at) => {
    const row = permuted[d] as Float64Array;
    row[i] = dealt[at]?.advantage ?? Number.NaN;
  });
  return permuted;
}
