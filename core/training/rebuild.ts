import type { Moments, Origin } from './journal.ts';

/** A model that was made to take the place of a lost one. */
export type Rebuild = {
  readonly cause: string;
  readonly origin: Origin;
  readonly moments: Moments;
  /** Batches that were trained on again. */
  readonly batches: number;
  /** Tokens that were sent for it, probes included. */
  readonly tokens: number;
  /** Null where training has no price. */
  readonly usd: number | null;
};

/** A rebuild as a person reads it. */
export function rebuildNotice({ cause, origin, moments, batches, tokens, usd }: Rebuild): string {
  const from = origin.path ?? 'a fresh adapter';
  const replayed = batches === 0 ? 'no batch' : batches === 1 ? '1 batch' : `${batches} batches`;
  const cost = usd === null ? 'at an unknown price' : `$${usd.toFixed(4)}`;
  const cold = moments === 'cold' ? '; optimizer moments are cold: the next updates may be rougher than before' : '';
  return `training was rebuilt from ${from} (${cause}): ${replayed} trained again, ${tokens} tokens, ${cost}${cold}`;
}
