import type { TrialId } from '../ids.ts';

/** Whose calls a book has: a trial's samples, a trial's scores, the run's checks before it begins, or the first calls of fresh weights. */
export type BookName =
  | { readonly of: TrialId; readonly kind: 'sample' | 'score' }
  | { readonly of: 'preflight'; readonly kind: 'check' }
  | { readonly of: `sampler-${string}`; readonly kind: 'first-calls' };

export const PREFLIGHT_BOOK: BookName = { of: 'preflight', kind: 'check' };

/** `name`: what the service keeps the weights under. */
export const samplerBook = (name: string): BookName => ({ of: `sampler-${name}`, kind: 'first-calls' });
