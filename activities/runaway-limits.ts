import type { RunConfig } from '../core/config/index.ts';
import type { TrialSpec } from '../core/run/trial.ts';

/** Calls for each of the agent's turns, and besides: an agent may summarise, title, and ask again what it could not read. */
const CALLS_PER_TURN = 4;
const CALLS_BESIDE = 100;
/** Answers at their longest for each turn: its own, and one that was lost, cut off or asked for besides. A context's worth comes on top. */
const LONGEST_ANSWERS_PER_TURN = 2;
/** Harbor ends an agent at its time; this is only for one that goes on all the same. */
const TIME_BESIDE_MS = 10 * 60_000;

type Limited = {
  readonly rollout: Pick<RunConfig['rollout'], 'episode_timeout_s' | 'context_budget_tokens'>;
  readonly sampling: Pick<RunConfig['sampling'], 'max_tokens'>;
};

/**
 * Where the gateway stops an agent that nothing else has stopped, also one in a sandbox that was given up. An agent that keeps to its turns
 * and its time never meets them.
 */
export function runawayLimits({ rollout, sampling }: Limited, { maxTurns }: Pick<TrialSpec, 'maxTurns'>) {
  const wallMs = Math.ceil(rollout.episode_timeout_s * 1000) + TIME_BESIDE_MS;
  return {
    maxCalls: CALLS_PER_TURN * maxTurns + CALLS_BESIDE,
    maxSampledTokens: LONGEST_ANSWERS_PER_TURN * maxTurns * sampling.max_tokens + rollout.context_budget_tokens,
    ...(Number.isFinite(wallMs) ? { maxWallMs: wallMs } : {}),
  };
}
