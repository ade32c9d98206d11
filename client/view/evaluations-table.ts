import { readRate } from '../../core/measures/rates.ts';
import type { EvalLabel, EvalResult } from '../../core/run/results.ts';
import type { Colors } from '../console.ts';
import { DASH, duration, percent } from './format.ts';
import { table } from './table.ts';

export const EVALUATION_NAMES: Readonly<Record<EvalLabel, string>> = {
  teacher: 'teacher',
  'student-before': 'student before',
  'student-after': 'student after',
};

/** What an evaluation measured; null when none of its trials was executed, whatever its report holds as the rate. */
export function solvedIn({ solveRate, executed }: Pick<EvalResult, 'solveRate' | 'executed'>): number | null {
  return solveRate === null ? null : readRate({ rate: solveRate, executedTrials: executed });
}

/** Teacher, student before and student after on the held-out tasks, each with its denominator; what was not measured is a dash. */
export function evaluationsTable(evaluations: readonly EvalResult[], colors: Colors): string {
  const rows = (Object.keys(EVALUATION_NAMES) as EvalLabel[]).map((label) => {
    const found = evaluations.find((evaluation) => evaluation.label === label);
    return found ? row(found) : [EVALUATION_NAMES[label], DASH, DASH, DASH, DASH, DASH];
  });
  return table(colors, ['held-out tasks', 'solved', 'passed/executed', 'tasks', 'infra-failed', 'time'], rows);
}

function row(evaluation: EvalResult): string[] {
  const { label, passed, executed, perTask, infraFailed, wallMs } = evaluation;
  return [
    EVALUATION_NAMES[label],
    percent(solvedIn(evaluation)),
    `${passed}/${executed}`,
    `${perTask.length}`,
    `${infraFailed}`,
    duration(wallMs),
  ];
}
