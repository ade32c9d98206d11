import type { TrialRetry } from '../../core/run/trial.ts';
import { readTestReport, type TestCounts } from './ctrf.ts';
import { exceptionOf, readResultJson, type TrialException, type TrialTimings, timingsOf } from './result-json.ts';
import { type RolloutTurns, readRolloutTurns } from './rollout-details.ts';
import { isGraderException, stopReason } from './stop-reason.ts';

/** What a trial wrote: the text of each file; null for one that is not there. */
export type TrialFiles = {
  /** `result.json` */
  readonly result: string;
  /** `verifier/ctrf.json`, a report of the task's tests. */
  readonly testReport: string | null;
  /** `agent/trajectory.json`, as harbor's own agents write it. */
  readonly trajectory: string | null;
};

export type TrialReading = {
  /** The reward that counts. */
  readonly rewardKey: string;
  /** Model calls that the agent may make; absent for an agent that makes none. */
  readonly maxTurns?: number;
};

/** How a trial ended. Exactly one of `reward !== null` and `infraFailed` holds. */
export type TrialOutcome = {
  readonly trialName: string;
  readonly taskName: string;
  /** The reward that counts, in [0, 1]; null if the trial was infra-failed. */
  readonly reward: number | null;
  /** True for the full reward, 1. */
  readonly passed: boolean;
  /** Everything the task's verifier reported. */
  readonly rewards: Readonly<Record<string, number>>;
  /** True when the trial says something about the model: rates are over executed trials. */
  readonly executed: boolean;
  /** True when the trial says nothing about the model, so that it is not counted. */
  readonly infraFailed: boolean;
  /** Why it was infra-failed, in words. */
  readonly infraReason: string | null;
  /** `never` for a trial that counts, and for finished work that its grader could not grade: the same grader would fail again. */
  readonly retry: TrialRetry;
  readonly exceptionType: string | null;
  readonly exceptionMessage: string | null;
  /** True when the exception is the grader's: the agent had ended by itself. */
  readonly graderFailed: boolean;
  /** Why the agent ended; see `stopReason`. */
  readonly stopReason: string | null;
  /** Model calls the agent counted; null if it does not count. */
  readonly agentTurns: number | null;
  /** How the task's tests went; null without a readable report. */
  readonly tests: TestCounts | null;
  /** Model calls in harbor's own files, for agents that record them. */
  readonly rollout: RolloutTurns;
  readonly timings: TrialTimings;
};

/**
 * Reads what a harbor 0.25 trial left. A reward in [0, 1] counts whatever else happened (an agent that used up its time was graded too);
 * without one (grader timeout, missing or bad reward, a sandbox that did not start) the trial is infra-failed.
 * @throws TrialCrashed if `result` is not such a file (e.g. cut short).
 */
export function readTrial(files: TrialFiles, { rewardKey, maxTurns = Number.POSITIVE_INFINITY }: TrialReading): TrialOutcome {
  const result = readResultJson(files.result);
  const exception = exceptionOf(result);
  const rewards = result.verifier_result?.rewards ?? {};
  const infraReason = whyInfraFailed(exception, rewards, rewardKey);
  const turns = result.agent_result?.metadata?.n_turns;
  return {
    trialName: result.trial_name,
    taskName: result.task_name,
    reward: infraReason === null ? (rewards[rewardKey] ?? null) : null,
    passed: infraReason === null && rewards[rewardKey] === 1,
    rewards: Object.fromEntries(Object.entries(rewards).filter((entry): entry is [string, number] => entry[1] !== null)),
    executed: infraReason === null,
    infraFailed: infraReason !== null,
    infraReason,
    retry: infraReason === null ? 'never' : retryAfter(exception, result.verifier_result !== null),
    exceptionType: exception?.exception_type ?? null,
    exceptionMessage: exception?.exception_message ?? null,
    graderFailed: isGraderException(exception),
    stopReason: stopReason(result, exception, { maxTurns, trajectory: files.trajectory }),
    agentTurns: typeof turns === 'number' ? turns : null,
    tests: readTestReport(files.testReport),
    rollout: readRolloutTurns(result.agent_result?.rollout_details, files.result),
    timings: timingsOf(result),
  };
}

function whyInfraFailed(
  exception: TrialException | null,
  rewards: Readonly<Record<string, number | null>>,
  rewardKey: string,
): string | null {
  const problem = rewardProblem(rewards, rewardKey);
  if (problem === null || exception === null) return problem;
  return `${exception.exception_type}: ${exception.exception_message.slice(0, 500)}; ${problem}`;
}

function rewardProblem(rewards: Readonly<Record<string, number | null>>, rewardKey: string): string | null {
  const reward = rewards[rewardKey];
  if (reward === undefined) {
    const found = Object.keys(rewards);
    const told = found.length === 0 ? 'no reward at all' : `only ${found.join(', ')}`;
    return `the verifier reported no reward "${rewardKey}" (${told})`;
  }
  if (reward === null || !Number.isFinite(reward)) return `reward "${rewardKey}" is not a finite number`;
  if (reward < 0 || reward > 1) return `reward "${rewardKey}" is ${reward}, outside [0, 1]`;
  return null;
}

/** A verifier that neither answered nor failed is a riddle worth one more try; one that answered without our reward would do so again. */
function retryAfter(exception: TrialException | null, verifierAnswered: boolean): TrialRetry {
  if (exception === null) return verifierAnswered ? 'never' : 'once';
  return isGraderException(exception) ? 'never' : 'again';
}
