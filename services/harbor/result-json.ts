import { z } from 'zod';
import { TrialCrashed } from './errors.ts';

/** What harbor leaves out of a file means the same as null. */
const absent = <T extends z.ZodType>(schema: T) => schema.nullable().default(null);

const Timing = absent(z.object({ started_at: z.string().nullable(), finished_at: z.string().nullable() }));
const ExceptionInfo = absent(z.object({ exception_type: z.string(), exception_message: z.string() }));

/** Infinity included: a reward file may hold 1e999, and such a trial has an outcome too. */
const AnyNumber = z.custom<number>((value) => typeof value === 'number', 'must be a number');

/** The part of harbor 0.25's result.json that decides an outcome. harbor writes a non-finite number as null. */
const ResultJson = z.object({
  trial_name: z.string().min(1),
  task_name: z.string().min(1),
  task_checksum: z.string(),
  agent_result: z.object({ metadata: absent(z.record(z.string(), z.unknown())), rollout_details: z.unknown().optional() }).nullable(),
  verifier_result: z.object({ rewards: absent(z.record(z.string(), AnyNumber.nullable())) }).nullable(),
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

/** @throws TrialCrashed if the text is not a harbor 0.25 trial result (e.g. cut short). */
export function readResultJson(text: string): ResultJson {
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

/** The exception that ended the trial; of a multi-step trial, that of its first step which has one. */
export function exceptionOf(result: ResultJson): TrialException | null {
  return result.exception_info ?? result.step_results?.find((step) => step.exception_info !== null)?.exception_info ?? null;
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
