import { at } from '../lists.ts';
import { seededRandom, seedFromName } from '../random/seeded.ts';

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

const EXACT_TASKS = 14;
const FLIPS = 20_000;
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

/**
 * Two-sided sign-flip test and its inversion. Under "the mean is δ" every difference minus δ could have had either sign; the test counts
 * the sign patterns whose sum is at least as far from zero as the observed one. All patterns up to 14 tasks, else 20,000 seeded ones.
 * Null when there is no difference. Source: Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, §3.2.
 */
export function signFlipEvidence(differences: readonly number[], confidence: number): Evidence | null {
  const n = differences.length;
  if (n === 0) return null;
  const total = differences.reduce((sum, d) => sum + d, 0);
  const patterns = n <= EXACT_TASKS ? allPatterns(differences) : randomPatterns(differences);
  const alpha = 1 - confidence;
  const asFar = patterns.filter(({ positive, negative }) => Math.abs(positive.sum - negative.sum) >= Math.abs(total) - TIE).length;
  // A pattern keeps δ as long as δ lies between the means of its two parts; the pattern with one part empty keeps every δ.
  const highs = patterns.map((pattern) => Math.max(meanOf(pattern.positive, 1), meanOf(pattern.negative, 1))).sort((a, b) => b - a);
  const lows = patterns.map((pattern) => Math.min(meanOf(pattern.positive, -1), meanOf(pattern.negative, -1))).sort((a, b) => a - b);
  const rejected = Math.floor(alpha * patterns.length + TIE);
  return {
    n,
    mean: total / n,
    pValue: asFar / patterns.length,
    interval: { low: Math.max(-1, at(lows, rejected)), high: Math.min(1, at(highs, rejected)) },
    confidence,
    method: n <= EXACT_TASKS ? 'exact' : 'monte-carlo',
  };
}

type Part = { sum: number; count: number };
type Pattern = { readonly positive: Part; readonly negative: Part };

function meanOf(part: Part, infinity: 1 | -1): number {
  return part.count === 0 ? infinity * Number.POSITIVE_INFINITY : part.sum / part.count;
}

function split(differences: readonly number[], isPositive: (index: number) => boolean): Pattern {
  const pattern = { positive: { sum: 0, count: 0 }, negative: { sum: 0, count: 0 } };
  differences.forEach((d, i) => {
    const part = isPositive(i) ? pattern.positive : pattern.negative;
    part.sum += d;
    part.count++;
  });
  return pattern;
}

function allPatterns(differences: readonly number[]): Pattern[] {
  return Array.from({ length: 2 ** differences.length }, (_, bits) => split(differences, (i) => ((bits >> i) & 1) === 1));
}

/** The observed pattern is one of them, so that a p-value is never 0. */
function randomPatterns(differences: readonly number[]): Pattern[] {
  const random = seededRandom(seedFromName('sign flips'));
  const drawn = Array.from({ length: FLIPS - 1 }, () => split(differences, () => random.coin()));
  return [split(differences, () => true), ...drawn];
}
