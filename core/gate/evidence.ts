import { selectInPlace } from './select.ts';
import { type SignPatterns, signPatterns } from './sign-patterns.ts';

/** Solve rates of one holdout task over its executed attempts; null where none was executed. */
export type TaskRates = {
  readonly taskId: string;
  readonly teacher: number | null;
  readonly before: number | null;
  readonly after: number | null;
};

/** What paired differences say about their mean. The unit is the task: attempts at one task are not independent. */
export type Evidence = {
  /** Tasks that were measured on both sides. */
  readonly n: number;
  readonly mean: number;
  /** Two-sided sign-flip (paired permutation) test of "no difference". */
  readonly pValue: number;
  /** The differences that the same test does not reject at 1 − confidence, within [−1, 1], which holds every difference of rates. */
  readonly interval: { readonly low: number; readonly high: number };
  readonly confidence: number;
  readonly method: 'exact' | 'monte-carlo';
};

export type GateEvidence = {
  /** after − before; null when no task was measured on both sides. */
  readonly afterMinusBefore: Evidence | null;
  /** after − teacherFraction · teacher: information, never a verdict. */
  readonly afterMinusTeacherShare: Evidence | null;
};

/** Sums of the same numbers in another order must count as equal. */
const TIE = 1e-12;

/** Evidence of a gate from per-task rates. `confidence` of the intervals, e.g. 0.95; `teacherFraction` as in the gate's rule. */
export function gateEvidence(tasks: readonly TaskRates[], options: { confidence: number; teacherFraction: number }): GateEvidence {
  const differences = (other: (task: TaskRates) => number | null) =>
    tasks.flatMap((task) => {
      const value = other(task);
      return task.after === null || value === null ? [] : [task.after - value];
    });
  const share = (task: TaskRates) => (task.teacher === null ? null : options.teacherFraction * task.teacher);
  return {
    afterMinusBefore: signFlipEvidence(
      differences((task) => task.before),
      options.confidence,
    ),
    afterMinusTeacherShare: signFlipEvidence(differences(share), options.confidence),
  };
}

/** Whether so many tasks, if every one of them were won, would lift the interval above zero. */
export function canConvince(tasks: number, confidence: number): boolean {
  const best = signFlipEvidence(new Array(tasks).fill(1), confidence);
  return best !== null && best.interval.low > 0;
}

/**
 * Two-sided sign-flip test and its inversion. Under "the mean is δ" every difference minus δ could have had either sign; the test counts
 * the sign patterns whose sum is at least as far from zero as the observed one, and rejects δ when they are no more than 1 − confidence of
 * all. All patterns up to 14 tasks, else 20,000 seeded ones. Fewer than 6 tasks can reject nothing at 0.95: the observed pattern and its
 * mirror alone are 2 of 2ⁿ. A bound that touches zero is exactly 0, so `low > 0` may be asked plainly.
 * Null when there is no difference. Source: Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, §3.2.
 */
export function signFlipEvidence(differences: readonly number[], confidence: number): Evidence | null {
  const n = differences.length;
  if (n === 0) return null;
  const total = differences.reduce((sum, d) => sum + d, 0);
  const patterns = signPatterns(n);
  const { asFar, lows, highs } = flipSigns(Float64Array.from(differences), patterns, Math.abs(total));
  // Every pattern keeps the observed mean, so it keeps a δ below the mean exactly when its low end is at or below δ, and mirrored above.
  const rejected = Math.floor((1 - confidence + TIE) * patterns.count);
  return {
    n,
    mean: total / n,
    pValue: asFar / patterns.count,
    interval: { low: bound(selectInPlace(lows, rejected)), high: bound(selectInPlace(highs, patterns.count - 1 - rejected)) },
    confidence,
    method: patterns.isExact ? 'exact' : 'monte-carlo',
  };
}

/**
 * One pass over all patterns. A pattern keeps δ as long as δ lies between the means of its positive and its negative part, from `lows` to
 * `highs`; one with an empty part keeps every δ. `asFar` counts the patterns whose sum is at least `observed` from zero.
 */
function flipSigns(differences: Float64Array, { count, isPositive }: SignPatterns, observed: number) {
  const n = differences.length;
  const lows = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
  const highs = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  let asFar = 0;
  for (let pattern = 0; pattern < count; pattern++) {
    let positives = 0;
    let positive = 0;
    let negative = 0;
    for (let task = 0; task < n; task++) {
      const isIn = isPositive[pattern * n + task] as number; // multiplied, not branched on: a coin cannot be predicted
      const difference = differences[task] as number;
      positives += isIn;
      positive += isIn * difference;
      negative += (1 - isIn) * difference;
    }
    if (Math.abs(positive - negative) >= observed - TIE) asFar++;
    if (positives === 0 || positives === n) continue;
    const a = positive / positives;
    const b = negative / (n - positives);
    lows[pattern] = Math.min(a, b);
    highs[pattern] = Math.max(a, b);
  }
  return { asFar, lows, highs };
}

/** An end of the interval, within what a difference of rates can be; the last bits of a float do not decide whether it touches zero. */
function bound(value: number): number {
  return Math.abs(value) < TIE ? 0 : Math.max(-1, Math.min(1, value));
}
