import { z } from 'zod';
import type { RunConfig } from '../config/schema.ts';
import { BaselineReport } from './baseline-report.ts';

export type BaselineProblem =
  | 'import_missing_file'
  | 'import_invalid_report'
  | 'import_task_set'
  | 'import_too_few_attempts'
  | 'import_other_teacher'
  | 'import_no_base_model'
  | 'import_other_base_model'
  | 'import_null_measurement'
  | 'reuse_attempts_changed'
  | 'reuse_model_changed'
  | 'reuse_task_set'
  | 'reuse_null_measurement';

/** A baseline that must not be used for this run; `code` says why. */
export class BaselineError extends Error {
  readonly code: BaselineProblem;

  constructor(code: BaselineProblem, message: string) {
    super(message);
    this.name = 'BaselineError';
    this.code = code;
  }
}

export type BaselineWanted = {
  readonly which: 'teacher' | 'student';
  /** `gate.k`: a baseline with more attempts is fine. */
  readonly attempts: number;
  readonly holdout: readonly string[];
  /** What is sampled: the teacher's model or checkpoint, or the student's sampler path. */
  readonly providerModel: string;
  readonly baseModel: string;
  /** A report this run recorded earlier, if any; it goes before an import. */
  readonly recorded: BaselineReport | null;
  /** The text of the file to import, null when it is not there; undefined when none is named. */
  readonly importText?: string | null;
};

export type BaselineChoice =
  | { readonly source: 'recorded' | 'imported'; readonly report: BaselineReport }
  | { readonly source: 'measured' };

/** What a fresh run of this config wants of a baseline on its held-out tasks. */
function baselineWanted(
  { gate, teacher, student }: Pick<RunConfig, 'gate' | 'teacher' | 'student'>,
  which: 'teacher' | 'student',
  holdout: readonly string[],
): BaselineWanted {
  const common = { which, attempts: gate.k, holdout, recorded: null };
  return which === 'teacher'
    ? { ...common, providerModel: teacher.checkpoint ?? teacher.model, baseModel: teacher.model }
    : { ...common, providerModel: student.base_model, baseModel: student.base_model };
}

/** The key under `[eval]` that names the report of a baseline, and the path it holds; null where none is named. */
export function baselineSource(
  config: Pick<RunConfig, 'eval'>,
  which: 'teacher' | 'student',
): { readonly field: string; readonly path: string } | null {
  const key = `${which}_baseline_from` as const;
  const path = config.eval[key];
  return path === null ? null : { field: `eval.${key}`, path };
}

export type BaselineImport =
  | { readonly report: BaselineReport; readonly problem: null }
  | { readonly report: null; readonly problem: string };

/** What a report that a config names comes to, from the text of its file, null when it is not there: the report, or why this run must not use it. */
export function importBaseline(
  config: Pick<RunConfig, 'gate' | 'teacher' | 'student'>,
  which: 'teacher' | 'student',
  holdout: readonly string[],
  text: string | null,
): BaselineImport {
  try {
    return { report: importOf(baselineWanted(config, which, holdout), text), problem: null };
  } catch (error) {
    if (!(error instanceof BaselineError)) throw error;
    return { report: null, problem: `${error.message} (${error.code})` };
  }
}

/** Where a baseline comes from. @throws BaselineError when the recorded or imported report does not fit this run. */
export function chooseBaseline(wanted: BaselineWanted): BaselineChoice {
  const { recorded, importText } = wanted;
  if (recorded) return { source: 'recorded', report: checkRecorded(wanted, recorded) };
  if (importText === undefined) return { source: 'measured' };
  return { source: 'imported', report: importOf(wanted, importText) };
}

function importOf(wanted: BaselineWanted, text: string | null): BaselineReport {
  if (text === null) throw new BaselineError('import_missing_file', `the ${wanted.which} baseline to import is not there`);
  return checkImported(wanted, parseReport(text));
}

function parseReport(text: string): BaselineReport {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new BaselineError('import_invalid_report', `the baseline to import is not JSON: ${(error as Error).message}`);
  }
  const parsed = BaselineReport.safeParse(json);
  if (!parsed.success)
    throw new BaselineError('import_invalid_report', `the baseline to import is no report: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

function checkRecorded(wanted: BaselineWanted, report: BaselineReport): BaselineReport {
  if (report.attempts < wanted.attempts) {
    throw new BaselineError(
      'reuse_attempts_changed',
      `the recorded baseline has ${report.attempts} attempts a task; ${wanted.attempts} are asked for`,
    );
  }
  if (wanted.which === 'teacher' && report.provider_model !== wanted.providerModel) {
    throw new BaselineError('reuse_model_changed', `the recorded baseline is of ${report.provider_model}, not of ${wanted.providerModel}`);
  }
  if (!sameTasks(wanted.holdout, report.task_ids))
    throw new BaselineError('reuse_task_set', 'the recorded baseline is of other tasks than the holdout');
  if (report.executed_trials === 0) throw new BaselineError('reuse_null_measurement', 'nothing was executed in the recorded baseline');
  return report;
}

function checkImported(wanted: BaselineWanted, report: BaselineReport): BaselineReport {
  const fail = (code: BaselineProblem, why: string): never => {
    throw new BaselineError(code, `the ${wanted.which} baseline to import ${why}`);
  };
  if (!sameTasks(wanted.holdout, report.task_ids)) fail('import_task_set', 'is of other tasks than the holdout');
  if (report.attempts < wanted.attempts)
    fail('import_too_few_attempts', `has ${report.attempts} attempts a task; ${wanted.attempts} are asked for`);
  if (wanted.which === 'teacher' && report.provider_model !== wanted.providerModel) {
    fail('import_other_teacher', `is of ${report.provider_model}, not of ${wanted.providerModel}`);
  }
  if (report.base_model === null) {
    if (wanted.which === 'student') fail('import_no_base_model', 'does not say its base model');
  } else if (report.base_model !== wanted.baseModel) {
    fail('import_other_base_model', `is of base model ${report.base_model}, not of ${wanted.baseModel}`);
  }
  if (report.executed_trials === 0) fail('import_null_measurement', 'executed nothing: it measured no rate');
  return report;
}

function sameTasks(a: readonly string[], b: readonly string[]): boolean {
  const left = new Set(a);
  return a.length === b.length && left.size === new Set(b).size && b.every((id) => left.has(id));
}
