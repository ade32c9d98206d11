import { BadHarborInput } from './errors.ts';
import type { JobTemplate } from './job-template.ts';

/** Which agent acts, in harbor's words: a built-in `name` or an `import_path`, never both. */
export type AgentConfig = ({ readonly name: string } | { readonly import_path: string }) & {
  readonly model_name?: string;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
};

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

export type TurnAgentOptions = {
  /** The gateway's address for this trial, up to and without `/chat/completions`; `${NAME}` stands for a secret of the trial. */
  readonly apiBase: string;
  readonly model: string;
  readonly maxTurns: number;
  readonly temperature: number;
  /** Tokens the model may sample in one turn. */
  readonly maxTokens: number;
  /** What the model says to end the episode; the agent's default is `done`. */
  readonly stopWord?: string;
  readonly systemPrompt?: string;
  /** Characters of a command's stdout that the model sees; the agent's default is 4000. */
  readonly observationMaxChars?: number;
  /** Time for one command; the agent's default is 60 s. */
  readonly commandTimeoutMs?: number;
  /** Puts token ids and log-probs into result.json too; the gateway records them anyway. Default false. */
  readonly collectRolloutDetails?: boolean;
};

/** Our small agent. It reads its key from the trial's secret `STILLROOM_GATEWAY_KEY`, which is never written to a file. */
export function turnAgent(options: TurnAgentOptions): AgentConfig {
  const kwargs = {
    api_base: options.apiBase,
    model: options.model,
    max_turns: options.maxTurns,
    temperature: options.temperature,
    max_tokens: options.maxTokens,
    stop_word: options.stopWord,
    system_prompt: options.systemPrompt,
    observation_max_chars: options.observationMaxChars,
    command_timeout_sec: options.commandTimeoutMs === undefined ? undefined : options.commandTimeoutMs / 1000,
    collect_rollout_details: options.collectRolloutDetails,
  };
  const given = Object.entries(kwargs).filter(([, value]) => value !== undefined);
  return { import_path: 'stillroom_harbor.turn_agent:TurnAgent', kwargs: Object.fromEntries(given) };
}

/** harbor's agent that does nothing: a dry run of sandbox and grader. */
export const nopAgent: AgentConfig = { name: 'nop' };
