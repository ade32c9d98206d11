/**
 * Whether a log-probability is a finite number, for loops over tokens: `Number.isFinite` asks for a value of any kind, and so the engine may
 * make an object for every number it is asked about.
 */
export function isUsable(logprob: number): boolean {
  return Math.abs(logprob) < Number.POSITIVE_INFINITY;
}

/** Whether all of `from..to` (exclusive) are. */
export function areUsable(logprobs: Float64Array, from: number, to: number): boolean {
  for (let p = from; p < to; p++) if (!isUsable(logprobs[p] as number)) return false;
  return true;
}
