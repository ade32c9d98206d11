import { z } from 'zod';
import { TrialCrashed } from './errors.ts';
import { foreignResult } from './foreign-result.ts';
import type { Reached } from './outcome-table.ts';

/** What harbor leaves out of a file means the same as null. */
const absent = <T extends z.ZodType>(schema: T) => schema.nullable().default(null);

const Timing = absent(z.object({ started_at: z.string().nullable(), finished_at: z.string().nullable() }));
const ExceptionInfo = absent(z.object({ exception_type: z.string(), exception_message: z.string() }));

/** The part of harbor 0.25's result.json that decides an outcome. A reward may be anything: such a trial has an outcome too. */
const ResultJson = z.object({
  trial_name: z.string().min(1),
  task_name: z.string().min(1),
  task_checksum: z.string(),
  agent_result: z.object({ metadata: absent(z.record(z.string(), z.unknown())), rollout_details: z.unknown().optional() }).nullable(),
  verifier_result: z.object({ rewards: absent(z.record(z.string(), z.unknown())) }).nullable(),
  exception_info: ExceptionInfo,
  started_at: z.iso.datetime(),
  finished_at: z.iso.datetime(),
  environment_setup: Timing,
  agent_setup: Timing,
  agent_execution: Timing,
  verifier: Timing,
  step_results: absent(z.array(z.object({ exception_info: ExceptionInfo }))),
});
export type ResultJson = z.infer<typeof ResultJson>;
export type TrialException = { readonly exception_type: string; readonly exception_message: string };

/** @throws TrialCrashed if the text is not a harbor 0.25 trial result: cut short, or (`ForeignResult`) of another form. */
export function readResultJson(text: string): ResultJson {
  const json = parsed(text);
  const result = ResultJson.safeParse(json);
  if (!result.success) throw foreignResult(json, result.error);
  return result.data;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const told = error instanceof Error ? error.message.slice(0, 200) : '';
    throw new TrialCrashed(`result.json is not JSON (${text.length} characters): the trial was cut short while it was written. ${told}`);
  }
}

/** The exceptions that harbor recorded: the trial's own first, then those of its steps. */
export function exceptionsOf(result: ResultJson): TrialException[] {
  const all = [result.exception_info, ...(result.step_results ?? []).map((step) => step.exception_info)];
  return all.filter((exception) => exception !== null);
}

/** How far the trial came before it ended. A multi-step trial says so in its steps. */
export function reachedBy({ agent_execution, verifier, step_results }: ResultJson): Reached {
  if (verifier !== null) return 'grader';
  return agent_execution !== null || (step_results ?? []).length > 0 ? 'agent' : 'sandbox';
}

/** Milliseconds of each phase; null for a phase that the trial did not reach. */
export type TrialTimings = {
  readonly environmentSetupMs: number | null;
  readonly agentSetupMs: number | null;
  readonly agentMs: number | null;
  readonly verifierMs: number | null;
  /** From the trial's start to its end. */
  readonly totalMs: number;
};

export function timingsOf(result: ResultJson): TrialTimings {
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
