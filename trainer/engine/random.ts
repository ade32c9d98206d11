const mix = (value: number): number => {
  let mixed = Math.imul(value ^ (value >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return (mixed ^ (mixed >>> 15)) >>> 0;
};

/** A stream of numbers in [0, 1), the same on every machine. Streams of neighbouring seeds are unrelated. `seed` is any integer up to 2^53. */
export const uniformStream = (seed: number): (() => number) => {
  let state = mix(mix(seed >>> 0) + Math.floor(seed / 2 ** 32));
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    return mix(state) / 2 ** 32;
  };
};

/** Standard normal numbers (Box and Muller). */
export const normalStream = (seed: number): (() => number) => {
  const uniform = uniformStream(seed);
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
};
