import type { Evidence } from '../../core/gate/evidence.ts';
import type { GateVerdict } from '../../core/run/results.ts';
import type { Colors } from '../console.ts';
import { number, percent, pValue, signed } from './format.ts';

/** The gate's own words for why it did not accept; a reason that is not known here is shown as it came. */
const REASONS: Readonly<Record<string, string>> = {
  below_teacher_fraction: 'the student after training is below the required share of the teacher',
  regression: 'the student got worse than it was before',
  teacher_solves_nothing: 'the teacher solves nothing, so its share proves nothing',
  not_measured: 'a solve rate is missing: no trial of that evaluation was executed',
  insufficient_evidence: 'insufficient evidence: the interval of after − before touches zero',
};

/** The verdict with its evidence, a line each. */
export function verdictLines(verdict: GateVerdict, colors: Colors): string[] {
  const { accepted, reasons, threshold, after, improvement, overThreshold, earlierGates } = verdict;
  return [
    `Gate: ${accepted ? colors.green('accepted') : colors.red('not accepted')}`,
    ...reasons.map((reason) => `  because ${REASONS[reason] ?? reason}`),
    `  required     ${comparison(after, threshold)}, the required share of the teacher`,
    ...evidenceLines('after − before', improvement),
    ...evidenceLines('over required', overThreshold),
    ...(earlierGates > 0
      ? [
          `  seen before  ${earlierGates} earlier gate${earlierGates === 1 ? '' : 's'} of this protocol: each one more chance to pass by luck`,
        ]
      : []),
  ];
}

/** A rate that was not measured is neither above nor below another. */
function comparison(after: number | null, threshold: number | null): string {
  const sign = after === null || threshold === null ? 'not comparable with' : after >= threshold ? '≥' : '<';
  return `after ${percent(after)} ${sign} ${percent(threshold)}`;
}

function evidenceLines(label: string, evidence: Evidence | null): string[] {
  if (!evidence) return [];
  const { low, high } = evidence.interval;
  const interval = `${percent(evidence.confidence, 0)} interval ${number(low)} to ${number(high)}`;
  return [
    `  ${label.padEnd(14)} ${signed(evidence.mean)} · ${interval} · ${pValue(evidence.pValue)} (sign-flip) · n = ${evidence.n} tasks`,
  ];
}
