/**
 * Where the loss positions of a mask lie: `from, to, from, to, …`, each stretch half open, in order. Loss tokens come in long stretches,
 * one for each call, so that work done stretch by stretch need not ask at every token.
 */
export function lossStretches(mask: Uint8Array): number[] {
  const stretches: number[] = [];
  for (let from = mask.indexOf(1); from !== -1; ) {
    const end = mask.indexOf(0, from);
    const to = end === -1 ? mask.length : end;
    stretches.push(from, to);
    from = end === -1 ? -1 : mask.indexOf(1, to);
  }
  return stretches;
}

/** How many positions the stretches cover. */
export function lengthOf(stretches: readonly number[]): number {
  let length = 0;
  for (let s = 0; s < stretches.length; s += 2) length += (stretches[s + 1] as number) - (stretches[s] as number);
  return length;
}
