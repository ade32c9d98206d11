/** Largest mean and single difference, in nats, at which issued and recomputed log-probabilities still count as the same tokens. */
export const PROOF_LIMITS = { meanAbsDiffNats: 0.25, maxAbsDiffNats: 1.0 } as const;

export type ProofInput = {
  /** Ids the sampler returned. */
  readonly sampled: Int32Array;
  /** ln p of each of them as the sampler issued it. */
  readonly issued: Float64Array | Float32Array;
  /** ln p of each of them, scored again on prompt + sampled ids as they were recorded. */
  readonly recomputed: Float64Array | Float32Array;
};

/** Differences are NaN when the input itself is unusable; `reason` then says why. `reason` is null exactly when `ok`. */
export type ProofResult = {
  readonly ok: boolean;
  readonly meanAbsDiffNats: number;
  readonly maxAbsDiffNats: number;
  readonly reason: string | null;
};

/**
 * Tokens in, tokens out: shows that what was recorded is what was sampled. A shifted, re-tokenised or foreign sequence
 * scores far from its issued log-probabilities; numeric noise between a sampler and a trainer does not.
 */
export function proveTokens({ sampled, issued, recomputed }: ProofInput): ProofResult {
  const n = sampled.length;
  if (n === 0) return unusable('no sampled tokens to compare');
  if (issued.length !== n || recomputed.length !== n)
    return unusable(`${n} sampled tokens have ${issued.length} issued and ${recomputed.length} recomputed log-probabilities`);
  let sum = 0;
  let max = 0;
  for (let i = 0; i < n; i++) {
    const difference = Math.abs((issued[i] ?? Number.NaN) - (recomputed[i] ?? Number.NaN));
    if (!Number.isFinite(difference))
      return unusable(`log-probability of token ${i} is not finite (${issued[i]} issued, ${recomputed[i]} recomputed)`);
    sum += difference;
    max = Math.max(max, difference);
  }
  const mean = sum / n;
  return { ok: reasonFor(mean, max) === null, meanAbsDiffNats: mean, maxAbsDiffNats: max, reason: reasonFor(mean, max) };
}

function reasonFor(mean: number, max: number): string | null {
  if (mean > PROOF_LIMITS.meanAbsDiffNats)
    return `mean difference ${mean.toFixed(3)} nats per token is above ${PROOF_LIMITS.meanAbsDiffNats}`;
  if (max > PROOF_LIMITS.maxAbsDiffNats) return `largest difference ${max.toFixed(3)} nats is above ${PROOF_LIMITS.maxAbsDiffNats}`;
  return null;
}

function unusable(reason: string): ProofResult {
  return { ok: false, meanAbsDiffNats: Number.NaN, maxAbsDiffNats: Number.NaN, reason };
}
