import type { RunConfig } from '../config/schema.ts';
import type { Evidence } from './evidence.ts';

export type GateReason =
  | 'below_teacher_fraction'
  | 'regression'
  /** A teacher that solves nothing proves nothing. */
  | 'teacher_solves_nothing'
  /** A rate that nothing was executed for. */
  | 'not_measured'
  /** `gate.confidence` is set and the interval of after − before does not lie above zero. */
  | 'insufficient_evidence';

export type GateInput = {
  /** Solve rates over executed holdout trials, 0–1; null when nothing was executed. */
  readonly teacher: number | null;
  readonly before: number | null;
  readonly after: number | null;
  readonly gate: Pick<RunConfig['gate'], 'min_teacher_fraction' | 'require_no_regression' | 'confidence'>;
  /** after − before over task means; looked at only when `gate.confidence` is set. */
  readonly evidence: Evidence | null;
};

export type GateDecision = {
  readonly accepted: boolean;
  readonly reasons: readonly GateReason[];
  /** The rate the student has to reach; null when the teacher was not measured. */
  readonly threshold: number | null;
};

/** A rate that cannot be one. `rate` says which. */
export class GateError extends Error {
  readonly code = 'invalid_rate';
  readonly rate: 'teacher' | 'student-before' | 'student-after';

  constructor(rate: GateError['rate'], value: number) {
    super(`the ${rate} solve rate is ${value}; a rate lies between 0 and 1`);
    this.name = 'GateError';
    this.rate = rate;
  }
}

/** Rates are quotients of small counts; the last bits of a float must not decide. */
const TOLERANCE = 1e-9;

/** Whether the trained student earned promotion. @throws GateError naming the first rate that is not in [0, 1]. */
export function decideGate({ teacher, before, after, gate, evidence }: GateInput): GateDecision {
  checkRate('teacher', teacher);
  checkRate('student-before', before);
  checkRate('student-after', after);
  const threshold = teacher === null ? null : gate.min_teacher_fraction * teacher;
  const reasons: GateReason[] = [];
  if (teacher === null || before === null || after === null) reasons.push('not_measured');
  if (teacher === 0) reasons.push('teacher_solves_nothing');
  if (after !== null && threshold !== null && after < threshold - TOLERANCE) reasons.push('below_teacher_fraction');
  if (gate.require_no_regression && after !== null && before !== null && after < before - TOLERANCE) reasons.push('regression');
  if (gate.confidence !== null && !(evidence !== null && evidence.interval.low > 0)) reasons.push('insufficient_evidence');
  return { accepted: reasons.length === 0, reasons, threshold };
}

function checkRate(name: GateError['rate'], rate: number | null): void {
  if (rate !== null && !(rate >= 0 && rate <= 1)) throw new GateError(name, rate);
}
