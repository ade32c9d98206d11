/** A small seeded source of choices; the same seed gives the same choices on every machine. */
export type Rng = {
  /** A whole number in [0, count). */
  below(count: number): number;
  /** True with probability `p` (0–1). */
  chance(p: number): boolean;
  /** One element of a non-empty list, each as likely. */
  pick<T>(items: readonly T[]): T;
};

/** mulberry32: 32 bits of state, good enough for toy tasks and free of platform differences. */
export function createRng(seed: number): Rng {
  let state = seed >>> 0;
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number): number => Math.floor(unit() * count);
  return {
    below,
    chance: (p) => unit() < p,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new RangeError('pick: the list is empty');
      return item;
    },
  };
}

/** 32-bit hash of ASCII text (FNV-1a with a final mix, so that low bits are as good as high ones). */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Distinct random elements, in random order. */
export function sample<T>(rng: Rng, items: readonly T[], count: number): T[] {
  if (count > items.length) throw new RangeError(`sample: ${count} of ${items.length} items asked for`);
  const pool = [...items];
  return Array.from({ length: count }, () => pool.splice(rng.below(pool.length), 1)[0] as T);
}
