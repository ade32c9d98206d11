import type { TrialId } from '../ids.ts';

/** Whose calls a book has: a trial's samples, a trial's scores, or the run's checks before it begins. */
export type BookName = { readonly of: TrialId; readonly kind: 'sample' | 'score' } | { readonly of: 'preflight'; readonly kind: 'check' };

export const PREFLIGHT_BOOK: BookName = { of: 'preflight', kind: 'check' };
