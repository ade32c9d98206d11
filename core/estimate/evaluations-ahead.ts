import type { MetricsRow } from '../measures/metrics-row.ts';
import type { RunPlan } from '../run/pinned-run.ts';
import type { EvalResult, HoldoutLabel } from '../run/results.ts';
import { stepOfInterim } from '../run/step-name.ts';

/** What a run remembers of its costs. */
export type CostsSoFar = {
  /** On the held-out tasks. */
  readonly evaluations: readonly EvalResult[];
  /** Interim ones, the newest last. */
  readonly interim: readonly EvalResult[];
  readonly rows: readonly Pick<MetricsRow, 'usd' | 'trials'>[];
};

export type EvaluationPlan = Pick<RunPlan, 'steps' | 'gateK' | 'interim'> & { readonly nTrain: number; readonly nHoldout: number };

const HOLDOUT: readonly HoldoutLabel[] = ['teacher', 'student-before', 'student-after'];

/**
 * What an evaluation of `trials` trials may cost, in USD: as much per trial as this run's own evaluations of that model did. Before the
 * first of them a training trial stands in, which is scored and trained on as well; 0 when nothing was paid for yet.
 */
export function evaluationUsd(label: EvalResult['label'], trials: number, { evaluations, interim, rows }: CostsSoFar): number {
  const same = (other: EvalResult) => (other.label === 'teacher') === (label === 'teacher');
  const measured = [...evaluations, ...interim].filter((other) => other.source === 'measured' && same(other));
  return trials * (usdPerTrial(measured) ?? usdPerTrial(rows) ?? 0);
}

/** The same for every evaluation that is still to come: those on the held-out tasks, and the interim ones. */
export function evaluationsAheadUsd(plan: EvaluationPlan, soFar: CostsSoFar): number {
  const { steps, gateK, interim, nTrain, nHoldout } = plan;
  const missing = HOLDOUT.filter((label) => soFar.evaluations.every((done) => done.label !== label));
  const heldOut = missing.map((label) => evaluationUsd(label, nHoldout * gateK, soFar));
  const each = evaluationUsd('student-after', Math.min(interim.tasks, nTrain) * interim.k, soFar);
  return heldOut.reduce((sum, usd) => sum + usd, interimAhead(steps, interim.every, soFar.interim) * each);
}

function interimAhead(steps: number, every: number, done: readonly EvalResult[]): number {
  if (every === 0) return 0;
  const last = done.at(-1);
  return Math.floor(steps / every) - (last ? stepOfInterim(last.label) / every : 0);
}

function usdPerTrial(parts: readonly { readonly usd: number; readonly trials: number }[]): number | null {
  const trials = parts.reduce((sum, part) => sum + part.trials, 0);
  return trials === 0 ? null : parts.reduce((sum, part) => sum + part.usd, 0) / trials;
}
