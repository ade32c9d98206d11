import type { EvalResult, HoldoutLabel } from '../../core/run/results.ts';
import { stepOfInterim } from '../../core/run/step-name.ts';
import type { Colors } from '../console.ts';
import { DASH, duration, percent } from './format.ts';
import { table } from './table.ts';

const HOLDOUT_NAMES: Readonly<Record<HoldoutLabel, string>> = {
  teacher: 'teacher',
  'student-before': 'student before',
  'student-after': 'student after',
};

/** What a person calls an evaluation; one that this run did not measure says so. */
export function evaluationName({ label, source }: Pick<EvalResult, 'label' | 'source'>): string {
  const name = isHoldout(label) ? HOLDOUT_NAMES[label] : `student at step ${stepOfInterim(label)}`;
  return source === 'imported' ? `${name} (imported)` : name;
}

const isHoldout = (label: EvalResult['label']): label is HoldoutLabel => Object.hasOwn(HOLDOUT_NAMES, label);

/** `student at step 4 50.0 % (6/12)`, with its denominator. */
export function evaluationText(evaluation: EvalResult): string {
  const { passed, executed } = evaluation;
  return `${evaluationName(evaluation)} ${percent(evaluation.solveRate)} (${passed}/${executed})`;
}

/** Teacher, student before and student after on the held-out tasks, each with its denominator; what was not measured is a dash. */
export function evaluationsTable(evaluations: readonly EvalResult[], colors: Colors): string {
  const rows = (Object.keys(HOLDOUT_NAMES) as HoldoutLabel[]).map((label) => {
    const found = evaluations.find((evaluation) => evaluation.label === label);
    return found ? row(found) : [HOLDOUT_NAMES[label], DASH, DASH, DASH, DASH, DASH];
  });
  return table(colors, ['held-out tasks', ...COLUMNS], rows);
}

/** The interim evaluations, which are on training tasks and decide nothing. */
export function interimTable(evaluations: readonly EvalResult[], colors: Colors): string {
  return table(colors, ['training tasks', ...COLUMNS], evaluations.map(row));
}

const COLUMNS = ['solved', 'passed/executed', 'tasks', 'infra-failed', 'time'] as const;

function row(evaluation: EvalResult): string[] {
  const { source, passed, executed, infraFailed, wallMs } = evaluation;
  const time = source === 'imported' ? DASH : duration(wallMs);
  return [
    evaluationName(evaluation),
    percent(evaluation.solveRate),
    `${passed}/${executed}`,
    tasksText(evaluation),
    `${infraFailed}`,
    time,
  ];
}

/** An imported report may not say how its trials spread over the tasks. */
export const tasksText = ({ perTask }: EvalResult): string => (perTask.length === 0 ? DASH : `${perTask.length}`);
