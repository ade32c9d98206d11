import { gradedScore } from '../../../core/measures/batch-stats.ts';
import { readTestReport, type TestCounts } from '../../../services/harbor/ctrf.ts';
import { TrialCrashed } from '../../../services/harbor/errors.ts';
import { type RolloutTurns, readRolloutTurns } from '../../../services/harbor/rollout-details.ts';
import { readTrial, type TrialOutcome } from '../../../services/harbor/trial-result.ts';
import type { Finding } from '../judge.ts';
import { parseKeepingLiterals } from '../literals.ts';
import { difference } from '../same.ts';
import type { VectorCase, VectorFamily } from '../vector-file.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};

type Files = 'result' | 'ctrf' | 'trajectory';
type Input = { [file in Files]?: unknown } & { [file in `${Files}_raw`]?: string } & { max_turns: number; reward_key: string };
type Expected = { note_text?: string; error?: string } & Record<string, unknown>;

/** A file's text: given as text, or as the value it holds; null when it is not there. */
function textOf(file: Files, input: Input, { inputText }: VectorCase): string | null {
  const text = input[`${file}_raw`];
  if (text !== undefined) return text;
  if (input[file] == null) return null;
  return JSON.stringify((parseKeepingLiterals(inputText) as Input)[file]);
}

export function trial(input: Input, { note_text: _, ...expected }: Expected, _family: VectorFamily, vector: VectorCase): Finding {
  const testReport = textOf('ctrf', input, vector);
  const files = { result: textOf('result', input, vector) ?? '', testReport, trajectory: textOf('trajectory', input, vector) };
  try {
    const outcome = readTrial(files, { rewardKey: input.reward_key, maxTurns: input.max_turns });
    return compare(expected, { result_readable: true, ...named(outcome) });
  } catch (error) {
    if (!(error instanceof TrialCrashed)) throw error;
    const nothing = { stop_reason: null, spans: [], kept_on_resume: false };
    return compare(expected, { result_readable: false, graded: graded(readTestReport(testReport)), ...nothing });
  }
}

/** The recorder has one slot for how a trial stopped, in which a grader's exception hides the agent's own stop; ours has both. */
function named(outcome: TrialOutcome): Record<string, unknown> {
  return {
    reward: outcome.reward ?? 0,
    passed: outcome.passed,
    infra_failed: outcome.infraFailed,
    kept_on_resume: outcome.retry === 'never',
    graded: graded(outcome.tests),
    stop_reason: outcome.fault === 'grader' && outcome.exceptionType !== null ? 'error' : outcome.stopReason,
    spans: plain(outcome.rollout),
  };
}

const graded = (tests: TestCounts | null) => tests && { ...tests, score: gradedScore(tests) };
const plain = ({ turns }: RolloutTurns) =>
  turns.map((turn) => ({
    call_index: turn.callIndex,
    prompt: [...turn.prompt],
    sampled: [...turn.sampled],
    logprobs: [...turn.logprobs],
  }));

export function ctrf(input: Input, expected: unknown, _family: VectorFamily, vector: VectorCase): Finding {
  return compare(expected, { graded: graded(readTestReport(textOf('ctrf', input, vector))) });
}

export function spans(input: Input, expected: unknown, _family: VectorFamily, vector: VectorCase): Finding {
  const { agent_result } = input.result as { agent_result?: { rollout_details?: unknown } | null };
  return compare(expected, { spans: plain(readRolloutTurns(agent_result?.rollout_details, textOf('result', input, vector) ?? '')) });
}
