import { parseRunConfig } from '../../../core/config/parse.ts';
import type { BaselineReport } from '../../../core/gate/baseline-report.ts';
import { type BaselineChoice, BaselineError, chooseBaseline } from '../../../core/gate/baselines.ts';
import { decideGate, GateError } from '../../../core/gate/gate.ts';
import { NullMeasurementError, requireMeasured } from '../../../core/measures/rates.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { type Sections, toToml } from './sections.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};

type Rate = number | 'NaN' | 'Infinity' | '-Infinity';
type GateCase = { teacher: Rate; before: Rate; after: Rate; gate: Sections[string] };
function gateCase(input: GateCase, expected: unknown): Finding {
  const parsed = parseRunConfig(toToml({ gate: input.gate }), 'gate');
  if (!parsed.ok) return { difference: JSON.stringify(parsed.errors), refused: true };
  const rates = { teacher: Number(input.teacher), before: Number(input.before), after: Number(input.after) };
  try {
    return compare(expected, decideGate({ ...rates, gate: parsed.config.gate, evidence: null }));
  } catch (error) {
    if (error instanceof GateError) return compare(expected, { error: error.code, rate: error.rate });
    throw error;
  }
}

type EvalCase = { trials: number; executed_trials: number; solve_rate_over_executed: number };
function evalCase(input: EvalCase, expected: unknown): Finding {
  try {
    requireMeasured({ trials: input.trials, executedTrials: input.executed_trials });
    return compare(expected, { solve_rate: input.solve_rate_over_executed, report_written: true });
  } catch (error) {
    if (error instanceof NullMeasurementError) return compare(expected, { error: error.code });
    throw error;
  }
}

type BaselineCase = {
  which: 'teacher' | 'student';
  attempts_wanted: number;
  holdout: string[];
  provider_model: string;
  base_model: string;
  recorded_report: BaselineReport | null;
  resume: boolean;
  import_report: unknown;
  import_raw_text: string | null;
  import_file_exists: boolean | null;
};
/** What an evaluation would measure is 0.25 in these cases, at the attempts asked for. */
const report = (choice: BaselineChoice, attempts: number) =>
  choice.source === 'measured'
    ? { source: choice.source, solve_rate: 0.25, attempts }
    : { source: choice.source, solve_rate: choice.report.solve_rate, attempts: choice.report.attempts };
function baseline(input: BaselineCase, expected: unknown): Finding {
  const text = input.import_raw_text ?? JSON.stringify(input.import_report);
  const wanted = {
    which: input.which,
    attempts: input.attempts_wanted,
    holdout: input.holdout,
    providerModel: input.provider_model,
    baseModel: input.base_model,
    recorded: input.resume ? input.recorded_report : null,
    ...(input.import_file_exists === null ? {} : { importText: input.import_file_exists ? text : null }),
  };
  try {
    return compare(expected, report(chooseBaseline(wanted), input.attempts_wanted));
  } catch (error) {
    if (error instanceof BaselineError) return compare(expected, { error: error.code });
    throw error;
  }
}

export const gate: FamilyAdapter = { family: 'gate', kinds: { gate: gateCase, eval: evalCase, baseline } };
