import type { Fault, TrialRetry } from '../../core/run/trial.ts';
import { readTestReport, type TestCounts } from './ctrf.ts';
import { type ExceptionRow, exceptionRow, NO_EXCEPTION } from './outcome-table.ts';
import {
  exceptionsOf,
  type ResultJson,
  reachedBy,
  readResultJson,
  type TrialException,
  type TrialTimings,
  timingsOf,
} from './result-json.ts';
import { type RolloutTurns, readRolloutTurns } from './rollout-details.ts';
import { stopReason } from './stop-reason.ts';

/** What a trial wrote: the text of each file; null for one that is not there. */
export type TrialFiles = {
  /** `result.json` */
  readonly result: string;
  /** `verifier/ctrf.json`, a report of the task's tests. */
  readonly testReport: string | null;
  /** `agent/trajectory.json`, as harbor's own agents write it. */
  readonly trajectory: string | null;
  /** The path of the reward file that the grader wrote, if any. It is never read: what counts is harbor's word that the grader finished. */
  readonly rewardFile?: string | null;
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
  /** Who broke it; null where nothing broke. */
  readonly fault: Fault | null;
  /** A reward that was reported and does not count beside this exception; null where there is none such. */
  readonly setAside: number | null;
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
 * Reads what a harbor 0.25 trial left, by the table of `outcome-table.ts`: a reward in [0, 1] counts, beside an exception where its row says so (an
 * agent that used up its time was graded too); without one (grader timeout, missing or bad reward, a sandbox that did not start) the trial is
 * infra-failed.
 * @throws TrialCrashed if `result` is not such a file (e.g. cut short).
 */
export function readTrial(files: TrialFiles, { rewardKey, maxTurns = Number.POSITIVE_INFINITY }: TrialReading): TrialOutcome {
  const result = readResultJson(files.result);
  const exception = decidingException(result);
  const reported = result.verifier_result?.rewards ?? {};
  const problem = rewardProblem(reported, rewardKey, files.rewardFile ?? null);
  const reward = problem === null ? (reported[rewardKey] as number) : null;
  const counts = reward !== null && (exception?.row.rewardCounts ?? true);
  const broken = exception?.row ?? (result.verifier_result === null ? NO_EXCEPTION.silent : NO_EXCEPTION.unusable);
  const turns = result.agent_result?.metadata?.n_turns;
  return {
    trialName: result.trial_name,
    taskName: result.task_name,
    reward: counts ? reward : null,
    passed: counts && reward === 1,
    rewards: Object.fromEntries(Object.entries(reported).filter((entry): entry is [string, number] => typeof entry[1] === 'number')),
    executed: counts,
    infraFailed: !counts,
    infraReason: counts ? null : whyInfraFailed(exception, problem ?? `its reward ${reward} does not count beside that`),
    retry: counts ? 'never' : broken.retry,
    exceptionType: exception?.exception_type ?? null,
    exceptionMessage: exception?.exception_message ?? null,
    fault: counts && exception === null ? null : broken.fault,
    setAside: counts ? null : reward,
    stopReason: stopReason(result, exception?.row ?? null, { maxTurns, trajectory: files.trajectory }),
    agentTurns: typeof turns === 'number' ? turns : null,
    tests: readTestReport(files.testReport),
    rollout: readRolloutTurns(result.agent_result?.rollout_details, files.result),
    timings: timingsOf(result),
  };
}

/** The exception that decides: one beside which no reward counts goes before one that leaves it, and the trial's own before those of its steps. */
function decidingException(result: ResultJson): (TrialException & { readonly row: ExceptionRow }) | null {
  const reached = reachedBy(result);
  const recorded = exceptionsOf(result).map((exception) => ({ ...exception, row: exceptionRow(exception.exception_type, reached) }));
  return recorded.find(({ row }) => !row.rewardCounts) ?? recorded[0] ?? null;
}

function whyInfraFailed(exception: TrialException | null, problem: string): string {
  return exception === null ? problem : `${exception.exception_type}: ${exception.exception_message.slice(0, 500)}; ${problem}`;
}

function rewardProblem(rewards: Readonly<Record<string, unknown>>, rewardKey: string, file: string | null): string | null {
  const reward = rewards[rewardKey];
  if (reward === undefined) {
    const found = Object.keys(rewards);
    const told =
      found.length > 0 ? `only ${found.join(', ')}` : file === null ? 'no reward at all' : `no reward at all, though ${file} is there`;
    return `the verifier reported no reward "${rewardKey}" (${told})`;
  }
  if (reward === null) return `reward "${rewardKey}" is not a finite number`;
  if (typeof reward !== 'number') return `reward "${rewardKey}" is ${JSON.stringify(reward).slice(0, 50)}, not a number`;
  if (!Number.isFinite(reward)) return `reward "${rewardKey}" is not a finite number`;
  return reward < 0 || reward > 1 ? `reward "${rewardKey}" is ${reward}, outside [0, 1]` : null;
}
