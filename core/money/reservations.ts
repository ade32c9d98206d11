/** Trials that cost alike: the student's that are trained on, the student's that are only counted, and the teacher's. */
export type TrialKind = 'training' | 'student' | 'teacher';

/** What is known of a trial's cost before any was measured. */
export type TrialReserves = {
  /** `budget.max_usd_per_trial`: no trial can cost more; null where it is not set. */
  readonly limitUsd: number | null;
  /** USD of an episode as the estimate takes it to be, as far as there are prices. */
  readonly estimatedUsd: Readonly<Record<TrialKind, number>>;
};

/** What trials of each kind have cost: the 95th percentile of each of the newest batches, in USD, the newest last. */
export type TrialCosts = Readonly<Partial<Record<TrialKind, readonly number[]>>>;

/** Batches whose costs are remembered: old ones say little of weights that were trained since. */
const BATCHES_KEPT = 8;
const PERCENTILE = 0.95;

/** What is set aside for one trial: what it may cost at most, else the most that its like have cost, else what the estimate says. */
export function reservationUsd({ limitUsd, estimatedUsd }: TrialReserves, measured: TrialCosts, kind: TrialKind): number {
  if (limitUsd !== null) return limitUsd;
  const batches = measured[kind] ?? [];
  return batches.length === 0 ? estimatedUsd[kind] : batches.reduce((most, usd) => Math.max(most, usd));
}

/** The costs with those of one more batch; a batch in which nothing was paid for says nothing. */
export function withBatch(measured: TrialCosts, kind: TrialKind, usualMostUsd: number | null): TrialCosts {
  if (usualMostUsd === null) return measured;
  return { ...measured, [kind]: [...(measured[kind] ?? []), usualMostUsd].slice(-BATCHES_KEPT) };
}

/** The 95th percentile (nearest rank) of what the trials of a batch cost; trials that cost nothing say nothing. Null where none is left. */
export function usualMostUsd(costsUsd: readonly number[]): number | null {
  const sorted = costsUsd.filter((usd) => usd > 0).toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * PERCENTILE) - 1] ?? null;
}
