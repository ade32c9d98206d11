/** Which agent acts, in harbor's words: a built-in `name` or an `import_path`, never both. */
export type AgentConfig = ({ readonly name: string } | { readonly import_path: string }) & {
  readonly model_name?: string;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
};

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
