/** What a run will have cost at its end, from what its steps cost so far. Null before the first step: nothing is known yet. */
export function forecastUsd(facts: {
  readonly spentUsd: number;
  /** Cost of each finished step. */
  readonly stepUsd: readonly number[];
  readonly remainingSteps: number;
  /** Cost of evaluations still to come, e.g. that of the ones already run; 0 when none is left. */
  readonly remainingEvalUsd: number;
}): number | null {
  if (facts.stepUsd.length === 0) return facts.remainingSteps === 0 ? facts.spentUsd + facts.remainingEvalUsd : null;
  return facts.spentUsd + meanUsd(facts.stepUsd) * facts.remainingSteps + facts.remainingEvalUsd;
}

/** The mean of some costs; 0 of none. */
export function meanUsd(costsUsd: readonly number[]): number {
  return costsUsd.length === 0 ? 0 : costsUsd.reduce((sum, usd) => sum + usd, 0) / costsUsd.length;
}
