import type { RunConfig } from '../core/config/index.ts';
import type { BaselineReport } from '../core/gate/baseline-report.ts';
import { BaselineError, baselineWanted, chooseBaseline } from '../core/gate/baselines.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import { sha256 } from './digest.ts';
import { readIfThere } from './input-files.ts';
import { InputProblem } from './input-problem.ts';

export type ImportedBaselines = {
  readonly reports: PinnedRun['importedBaselines'];
  /** sha256 by the key that names the file. */
  readonly fileHashes: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
};

type Imported = { readonly report: BaselineReport; readonly field: string; readonly hash: string };

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
    reports: { teacher: teacher?.report ?? null, student: student?.report ?? null },
    fileHashes: Object.fromEntries(found.map(({ field, hash }) => [field, hash])),
    warnings: found.filter(({ report }) => report.per_task === undefined).map(({ field }) => withoutTasks(field, config.gate.confidence)),
  };
}

async function importOne(
  projectRoot: string,
  config: RunConfig,
  which: 'teacher' | 'student',
  holdout: readonly string[],
): Promise<Imported | null> {
  const key = `${which}_baseline_from` as const;
  const [field, path] = [`eval.${key}`, config.eval[key]];
  if (path === null) return null;
  const text = await readIfThere(projectRoot, path, field);
  try {
    const choice = chooseBaseline({ ...baselineWanted(config, which, holdout), importText: text });
    if (choice.source === 'measured' || text === null) throw new Error(`${field} names a file and nothing came of it`);
    return { report: choice.report, field, hash: sha256(text) };
  } catch (error) {
    if (!(error instanceof BaselineError)) throw error;
    throw new InputProblem(field, `${path}: ${error.message} (${error.code})`);
  }
}

/** What an import without counts by task means for the gate. */
function withoutTasks(field: string, confidence: number | null): string {
  const missing = `${field} has no per_task, so nothing can be compared with it task by task`;
  if (field !== 'eval.student_baseline_from') return `${missing}: the teacher's lead and the evidence against its share stay unknown`;
  const verdict = confidence === null ? '' : `, and with gate.confidence = ${confidence} the gate says insufficient_evidence`;
  return `${missing}: the gate has no evidence of after − before${verdict}`;
}
