import type { RunConfig } from '../core/config/index.ts';
import { importedEvaluation } from '../core/gate/baseline-report.ts';
import { baselineSource, importBaseline } from '../core/gate/baselines.ts';
import { studentOf, teacherOf } from '../core/run/models.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import type { EvalResult, HoldoutLabel } from '../core/run/results.ts';
import type { ModelRef } from '../core/run/trial.ts';
import { sha256 } from './digest.ts';
import { readIfThere } from './input-files.ts';
import { InputProblem } from './input-problem.ts';

export type ImportedBaselines = {
  readonly evaluations: PinnedRun['importedBaselines'];
  /** sha256 by the key that names the file. */
  readonly fileHashes: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
};

type Imported = { readonly evaluation: EvalResult; readonly field: string; readonly hash: string };

/** Reads and checks the baselines that a config imports. @throws InputProblem naming each that cannot stand for this run's own, and why */
export async function importBaselines(projectRoot: string, config: RunConfig, holdout: readonly string[]): Promise<ImportedBaselines> {
  const problems: InputProblem[] = [];
  const load = (which: 'teacher' | 'student') =>
    importOne(projectRoot, config, which, holdout).catch((error: unknown) => {
      if (!(error instanceof InputProblem)) throw error;
      problems.push(error);
      return null;
    });
  const [teacher, student] = [await load('teacher'), await load('student')];
  const [first, ...others] = problems;
  if (first) throw others.length === 0 ? first : new InputProblem('config', problems.map(({ message }) => message).join('\n'));
  const found = [teacher, student].filter((one) => one !== null);
  return {
    evaluations: { teacher: teacher?.evaluation ?? null, student: student?.evaluation ?? null },
    fileHashes: Object.fromEntries(found.map(({ field, hash }) => [field, hash])),
    warnings: found
      .filter(({ evaluation }) => evaluation.perTask.length === 0)
      .map(({ field }) => withoutTasks(field, config.gate.confidence)),
  };
}

async function importOne(
  projectRoot: string,
  config: RunConfig,
  which: 'teacher' | 'student',
  holdout: readonly string[],
): Promise<Imported | null> {
  const source = baselineSource(config, which);
  if (source === null) return null;
  const { field, path } = source;
  const text = await readIfThere(projectRoot, path, field);
  const { report, problem } = importBaseline(config, which, holdout, text);
  if (report === null || text === null) throw new InputProblem(field, `${path}: ${problem}`);
  const [label, model] = measuredBy(config, which);
  return { evaluation: importedEvaluation(label, model, report), field, hash: sha256(text) };
}

/** The evaluation of a run that a baseline stands for, and its model. */
function measuredBy({ teacher, student }: RunConfig, which: 'teacher' | 'student'): [HoldoutLabel, ModelRef] {
  if (which === 'teacher') return ['teacher', teacherOf(teacher)];
  return ['student-before', studentOf(student)];
}

/** What an import without counts by task means for the gate. */
function withoutTasks(field: string, confidence: number | null): string {
  const missing = `${field} has no per_task, so nothing can be compared with it task by task`;
  if (field !== 'eval.student_baseline_from') return `${missing}: the teacher's lead and the evidence against its share stay unknown`;
  const verdict = confidence === null ? '' : `, and with gate.confidence = ${confidence} the gate says insufficient_evidence`;
  return `${missing}: the gate has no evidence of after − before${verdict}`;
}
