import { z } from 'zod';
import { TrialCrashed } from './errors.ts';

const Timing = z.object({ started_at: z.string().nullable(), finished_at: z.string().nullable() }).nullable();
const ExceptionInfo = z.object({ exception_type: z.string(), exception_message: z.string() }).nullable();

/** Infinity included: a reward file may hold 1e999, and such a trial has an outcome too. */
const AnyNumber = z.custom<number>((value) => typeof value === 'number', 'must be a number');

/** The part of harbor 0.25's result.json that decides an outcome. harbor writes a non-finite number as null. */
const ResultJson = z.object({
  trial_name: z.string().min(1),
  task_name: z.string().min(1),
  task_checksum: z.string(),
  agent_result: z.object({ metadata: z.record(z.string(), z.unknown()).nullable() }).nullable(),
  verifier_result: z.object({ rewards: z.record(z.string(), AnyNumber.nullable()).nullable() }).nullable(),
  exception_info: ExceptionInfo,
  started_at: z.iso.datetime(),
  finished_at: z.iso.datetime(),
  environment_setup: Timing,
  agent_setup: Timing,
  agent_execution: Timing,
  verifier: Timing,
  step_results: z.array(z.object({ exception_info: ExceptionInfo })).nullable(),
});
type ResultJson = z.infer<typeof ResultJson>;

/** Milliseconds of each phase; null for a phase that the trial did not reach. */
export type TrialTimings = {
  readonly environmentSetupMs: number | null;
  readonly agentSetupMs: number | null;
  readonly agentMs: number | null;
  readonly verifierMs: number | null;
  /** From the trial's start to its end. */
  readonly totalMs: number;
};

/** How a trial ended. Exactly one of `reward !== null` and `infraFailed` holds. */
export type TrialOutcome = {
  readonly trialName: string;
  readonly taskName: string;
  /** The reward that counts, in [0, 1]; null if the trial was infra-failed. */
  readonly reward: number | null;
  /** Everything the task's verifier reported. */
  readonly rewards: Readonly<Record<string, number>>;
  /** True when the trial says something about the model: rates are over executed trials. */
  readonly executed: boolean;
  /** True when the trial says nothing about the model, so that it is retried and not counted. */
  readonly infraFailed: boolean;
  /** Why it was infra-failed, in words. */
  readonly infraReason: string | null;
  readonly exceptionType: string | null;
  readonly exceptionMessage: string | null;
  /** Why the agent ended, as it says itself (`done`, `max_turns`, `overflow`, `length`); null if it does not or had no time to. */
  readonly agentStop: string | null;
  /** Model calls the agent counted; null if it does not count. */
  readonly agentTurns: number | null;
  readonly timings: TrialTimings;
};

/** Exceptions that leave a reward meaningful: the agent used up its time and its work was graded. */
const GRADED_ANYWAY = new Set(['AgentTimeoutError']);

/**
 * Reads a harbor 0.25 `result.json`. `rewardKey` names the reward that counts.
 * A reward counts without an exception or after an agent timeout; everything else (grader timeout, missing or bad reward, a
 * sandbox that did not start) is infra-failed. Throws `TrialCrashed` if the text is not such a file (e.g. cut short).
 */
export function parseTrialResult(text: string, rewardKey: string): TrialOutcome {
  const result = readResult(text);
  const exception = result.exception_info ?? result.step_results?.find((step) => step.exception_info !== null)?.exception_info ?? null;
  const rewards = result.verifier_result?.rewards ?? {};
  const infraReason = whyInfraFailed(exception, rewards, rewardKey);
  const metadata = result.agent_result?.metadata ?? {};
  return {
    trialName: result.trial_name,
    taskName: result.task_name,
    reward: infraReason === null ? (rewards[rewardKey] ?? null) : null,
    rewards: Object.fromEntries(Object.entries(rewards).filter((entry): entry is [string, number] => entry[1] !== null)),
    executed: infraReason === null,
    infraFailed: infraReason !== null,
    infraReason,
    exceptionType: exception?.exception_type ?? null,
    exceptionMessage: exception?.exception_message ?? null,
    agentStop: typeof metadata.stop === 'string' ? metadata.stop : null,
    agentTurns: typeof metadata.n_turns === 'number' ? metadata.n_turns : null,
    timings: timingsOf(result),
  };
}

function readResult(text: string): ResultJson {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new TrialCrashed(`result.json is not JSON (${text.length} characters): the trial was cut short while it was written`);
  }
  const parsed = ResultJson.safeParse(json);
  if (!parsed.success) throw new TrialCrashed(`result.json is not a harbor 0.25 trial result:\n${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

function whyInfraFailed(
  exception: { exception_type: string; exception_message: string } | null,
  rewards: Readonly<Record<string, number | null>>,
  rewardKey: string,
): string | null {
  if (exception !== null && !GRADED_ANYWAY.has(exception.exception_type)) {
    return `${exception.exception_type}: ${exception.exception_message.slice(0, 500)}`;
  }
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

function timingsOf(result: ResultJson): TrialTimings {
  return {
    environmentSetupMs: phaseMs(result.environment_setup),
    agentSetupMs: phaseMs(result.agent_setup),
    agentMs: phaseMs(result.agent_execution),
    verifierMs: phaseMs(result.verifier),
    totalMs: Date.parse(result.finished_at) - Date.parse(result.started_at),
  };
}

function phaseMs(timing: z.infer<typeof Timing>): number | null {
  if (timing?.started_at == null || timing.finished_at == null) return null;
  const ms = Date.parse(timing.finished_at) - Date.parse(timing.started_at);
  return Number.isFinite(ms) ? ms : null;
}
