import type { AgentConfig } from './agents.ts';
import { BadHarborInput } from './errors.ts';
import type { JobTemplate } from './job-template.ts';

/** harbor 0.25's TrialConfig, as far as Stillroom fills it in. */
export type TrialConfig = {
  readonly trial_name: string;
  readonly trials_dir: string;
  readonly task: { readonly path: string };
  readonly agent: AgentConfig & { readonly override_timeout_sec: number; readonly override_setup_timeout_sec?: number };
} & Omit<JobTemplate, JobOnly>;

/** Keys of a job file that mean nothing for a single trial. */
type JobOnly = 'tasks' | 'datasets' | 'quiet' | 'retry';

export type TrialConfigInput = {
  /** Absolute path of a task folder that does not change while the trial runs. */
  readonly taskDir: string;
  /** Unique over all attempts: harbor overwrites a trial of the same name in place. It becomes a folder's name. */
  readonly trialName: string;
  /** Absolute; the trial's files go to `<trialsDir>/<trialName>`. */
  readonly trialsDir: string;
  readonly template: JobTemplate;
  readonly agent: AgentConfig;
  readonly timeouts: {
    /** The agent's time, instead of the task's own. */
    readonly agentMs: number;
    /** Time for the agent's installation; harbor's default (6 minutes) if absent. */
    readonly agentSetupMs?: number;
    /** The grader's time; the template's or the task's own if absent. */
    readonly verifierMs?: number;
  };
};

/** One harbor TrialConfig for one attempt at one task. Throws `BadHarborInput` on a name that cannot be a folder's. */
export function trialConfig({ taskDir, trialName, trialsDir, template, agent, timeouts }: TrialConfigInput): TrialConfig {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(trialName)) {
    throw new BadHarborInput(`trial name "${trialName}": use up to 100 letters, digits, dots, dashes and underscores`);
  }
  const { tasks: _tasks, datasets: _datasets, quiet: _quiet, retry: _retry, ...rest } = template;
  const setup = timeouts.agentSetupMs === undefined ? {} : { override_setup_timeout_sec: timeouts.agentSetupMs / 1000 };
  const verifier =
    timeouts.verifierMs === undefined ? {} : { verifier: { ...rest.verifier, override_timeout_sec: timeouts.verifierMs / 1000 } };
  return {
    ...rest,
    ...verifier,
    trial_name: trialName,
    trials_dir: trialsDir,
    task: { path: taskDir },
    agent: { ...agent, override_timeout_sec: timeouts.agentMs / 1000, ...setup },
  };
}
