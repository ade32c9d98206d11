import { at } from '../lists.ts';
import { sha256 } from './sha256.ts';

/** The 64-bit seed of a name: the first 8 bytes of SHA-256 over its UTF-8, big-endian. */
export function seedFromName(name: string): bigint {
  return new DataView(sha256(new TextEncoder().encode(name)).buffer).getBigUint64(0);
}

/** A seeded source of randomness; equal seeds give equal sequences on every machine. */
/** A seed that every sampler takes: 31 bits. The same name gives the same seed, different names practically never do. */
export function samplerSeed(name: string): number {
  return Number(seedFromName(name) & 0x7fff_ffffn);
}

export type SeededRandom = {
  /** A whole number in [0, bound), without bias; bound ≤ 2³². */
  below(bound: number): number;
  /** A fair coin. */
  coin(): boolean;
};

/** sfc32 (C. Doty-Humphrey), seeded with the two halves of a 64-bit seed. Not for secrets. */
export function seededRandom(seed: bigint): SeededRandom {
  let a = Number(BigInt.asUintN(32, seed)) | 0;
  let b = Number(BigInt.asUintN(32, seed >> 32n)) | 0;
  let c = 0x9e3779b9 | 0;
  let counter = 1;
  const next = (): number => {
    const out = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + out;
    return out >>> 0;
  };
  for (let i = 0; i < 15; i++) next();
  return {
    below(bound) {
      const limit = 2 ** 32 - (2 ** 32 % bound);
      let draw = next();
      while (draw >= limit) draw = next();
      return draw % bound;
    },
    coin: () => next() >= 2 ** 31,
  };
}

/** A shuffled copy (Fisher–Yates). */
export function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [copy[i], copy[j]] = [at(copy, j), at(copy, i)];
  }
  return copy;
}
