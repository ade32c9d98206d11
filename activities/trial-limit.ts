import type { RunConfig } from '../core/config/index.ts';
import { spendOf } from '../core/measures/spend.ts';
import { mostTokens, type TrialUse, tokenPrices } from '../core/money/trial-limit.ts';
import type { TrialSpec } from '../core/run/trial.ts';
import type { SpendLimit } from '../services/gateway/index.ts';
import type { PaidCalls } from './paid-calls.ts';

/**
 * The config's limit for one trial, over all its attempts: what died attempts bought in vain and lost counts as well. A training trial must
 * leave room for its scores and its training. Answers of an earlier attempt are given out whatever they have cost: they are paid for, and
 * would be paid for again if they were refused.
 */
export function trialLimit(
  { budget, pricing, train }: Pick<RunConfig, 'budget' | 'pricing' | 'train'>,
  { who, trains }: Pick<TrialSpec, 'who' | 'trains'>,
  calls: PaidCalls,
): { readonly spendLimit?: SpendLimit } {
  const limitUsd = budget.max_usd_per_trial;
  if (limitUsd === null) return {};
  const prices = tokenPrices(pricing, who, trains ? train : null);
  const besideUsd = () => (calls.isReplaying ? 0 : spendOf(pricing, calls.beside).usd);
  return { spendLimit: { limitUsd, mostTokens: (use: TrialUse) => mostTokens(limitUsd - besideUsd(), prices, use) } };
}
