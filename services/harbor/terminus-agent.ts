import type { AgentConfig } from './agents.ts';

export type TerminusAgentOptions = {
  /** The gateway's address for this trial, up to and without `/chat/completions`. */
  readonly apiBase: string;
  readonly model: string;
  readonly maxTurns: number;
  /** The run's: the gateway refuses any other. */
  readonly temperature: number;
  /** Tokens the model may sample in one turn. */
  readonly maxTokens: number;
  /** Tokens that a prompt and its answer may have together; the agent plans its compaction by it. */
  readonly contextLimitTokens: number;
  /**
   * What a full context means. True: the agent has its history summarised, in calls of its own, and goes on; each summary opens new
   * fragments. False: the episode ends, and what was done is graded.
   */
  readonly compaction: boolean;
  /** Puts token ids and log-probs into result.json too; the gateway records them anyway. */
  readonly collectRolloutDetails: boolean;
};

/** Free context below which the agent compacts before the gateway makes it: harbor's own 8000 tokens, less for small contexts. */
const COMPACT_BELOW_FREE_TOKENS = 8000;
/** harbor's rule for names of this provider. */
const MODEL_NAME_MAX_CHARS = 64;

/**
 * harbor's terminus-2: commands as keystrokes in a tmux session of the sandbox, which must have tmux. Its key is the trial's secret
 * `STILLROOM_GATEWAY_KEY`, filled in where the calls are made and written nowhere. Reasoning is left out of its history: the gateway puts
 * the sampled ids back.
 */
export function terminusAgent(options: TerminusAgentOptions): AgentConfig {
  const { apiBase, maxTurns, temperature, maxTokens, contextLimitTokens, compaction, collectRolloutDetails } = options;
  return {
    name: 'terminus-2',
    // Of LiteLLM's clients for this wire the one that sends nothing of its own and keeps no client per key.
    model_name: `hosted_vllm/${litellmName(options)}`,
    kwargs: {
      api_base: apiBase,
      llm_kwargs: { api_key: `\${STILLROOM_GATEWAY_KEY}` },
      llm_call_kwargs: { max_tokens: maxTokens },
      // LiteLLM refuses a model of this provider without prices. What a trial costs is counted at the gateway.
      model_info: {
        max_input_tokens: contextLimitTokens,
        max_output_tokens: maxTokens,
        input_cost_per_token: 0,
        output_cost_per_token: 0,
        cache_creation_input_token_cost: 0,
        cache_read_input_token_cost: 0,
      },
      max_turns: maxTurns,
      suppress_max_turns_warning: true,
      temperature,
      enable_summarize: compaction,
      proactive_summarization_threshold: Math.min(COMPACT_BELOW_FREE_TOKENS, Math.floor(contextLimitTokens / 4)),
      interleaved_thinking: false,
      collect_rollout_details: collectRolloutDetails,
      record_terminal_session: false, // it would need asciinema in the sandbox
    },
  };
}

/** LiteLLM keeps one table of models and their limits for all trials of the process, so the limits are part of the name. */
function litellmName({ model, contextLimitTokens, maxTokens }: TerminusAgentOptions): string {
  const limits = `.${contextLimitTokens}.${maxTokens}`;
  return model.replaceAll(/[^\w.-]/g, '-').slice(0, MODEL_NAME_MAX_CHARS - limits.length) + limits;
}
