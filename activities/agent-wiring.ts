import type { RunConfig } from '../core/config/index.ts';
import type { AgentWiring } from '../services/harbor/index.ts';

type Seat = Pick<AgentWiring, 'model' | 'maxTurns' | 'contextLimitTokens'>;

/** What a run tells its agent, in any trial of it, but for where its model answers. */
export function agentWiring({ rollout, sampling }: Pick<RunConfig, 'rollout' | 'sampling'>, seat: Seat): Omit<AgentWiring, 'apiBase'> {
  return { ...seat, temperature: sampling.temperature, maxTokens: sampling.max_tokens, compaction: rollout.compaction };
}
