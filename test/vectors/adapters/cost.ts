import { parseRunConfig } from '../../../core/config/parse.ts';
import { EstimateError, estimateCost } from '../../../core/estimate/cost.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { type Sections, toToml } from './sections.ts';

type CostCase = { config: Sections; n_train: number; n_holdout: number };

function projection(input: CostCase): unknown {
  const parsed = parseRunConfig(toToml(input.config), 'run.toml');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  try {
    const estimate = estimateCost(parsed.config, { nTrain: input.n_train, nHoldout: input.n_holdout });
    return {
      ok: true,
      train_episodes: estimate.trainEpisodes,
      eval_episodes: estimate.evalEpisodes,
      baseline_episodes: estimate.baselineEpisodes,
      warmup_episodes: estimate.warmupEpisodes,
      lines: estimate.lines.map(({ pricePerMtokUsd, ...line }) => ({ ...line, price_per_mtok: pricePerMtokUsd })),
      priced_usd: estimate.pricedUsd,
      unpriced_meters: estimate.unpricedMeters,
      fully_priced: estimate.fullyPriced,
      pricing_is_complete: estimate.pricingIsComplete,
    };
  } catch (error) {
    if (error instanceof EstimateError) return { ok: false, error: error.code };
    throw error;
  }
}

function check(input: CostCase, expected: unknown): Finding {
  const found = difference(expected, projection(input));
  return found === null ? null : { difference: found };
}

export const cost: FamilyAdapter = { family: 'cost', kinds: { '': check } };
