import { cancellationSignal } from '@temporalio/activity';
import type { ModelRef, TrialSpec } from '../core/run/trial.ts';
import { checkSample, type GatewaySession } from '../services/gateway/index.ts';
import { type AgentConfig, agentConfig, hasNoNetwork } from '../services/harbor/index.ts';
import { agentWiring } from './agent-wiring.ts';
import { forGateway, type ModelAccess } from './model-access.ts';
import type { PaidCalls } from './paid-calls.ts';
import { recordedSampler } from './recorded-sampler.ts';
import type { RolloutDeps } from './rollouts.ts';
import type { RunRecord } from './run-records.ts';
import { runawayLimits } from './runaway-limits.ts';
import { trialLimit } from './trial-limit.ts';

/** What the gateway is told of a trial: the model behind it, and the trial's limits. */
export async function sessionOptions(record: RunRecord, spec: TrialSpec, name: typeof spec.trialId, calls: PaidCalls, deps: RolloutDeps) {
  const { models, rendererOf, drain } = deps;
  const { config } = record;
  const { model, trialId, who } = spec;
  const renderer = await rendererOf(record, model.model);
  const isUsable = (result: Parameters<typeof checkSample>[0], { maxTokens }: { readonly maxTokens: number }) => {
    try {
      return checkSample(result, { maxTokens, vocabularySize: renderer.vocabulary.size }) !== null;
    } catch {
      return false;
    }
  };
  const weights = model.kind === 'sampler' ? model.path : model.model;
  const signal = cancellationSignal();
  const sampler = recordedSampler(models.tokenSampler(model), { calls, trialId, who, model: weights, isUsable, drain, signal });
  return {
    trialId: name,
    modelName: model.model,
    sampler: forGateway(sampler),
    renderer,
    contextLimitTokens: await contextLimit(record, model, models),
    maxTokensPerCall: config.sampling.max_tokens,
    temperature: config.sampling.temperature,
    ...runawayLimits(config, spec),
    ...trialLimit(config, spec, calls),
  };
}

/** What the run asks for, and no more than the service takes. */
async function contextLimit({ config }: RunRecord, { model }: ModelRef, models: ModelAccess): Promise<number> {
  return Math.min(config.rollout.context_budget_tokens, (await models.contextLimitTokens(model)) ?? Number.POSITIVE_INFINITY);
}

/** The run's agent, at its seat in this trial. */
export async function agentFor(record: RunRecord, spec: TrialSpec, session: GatewaySession, models: ModelAccess): Promise<AgentConfig> {
  const { agent, config, jobTemplate } = record;
  const { model, maxTurns } = spec;
  const seat = { model: model.model, maxTurns, contextLimitTokens: await contextLimit(record, model, models) };
  const inside = agent.runtime === 'installed' && hasNoNetwork(jobTemplate);
  return agentConfig(agent, { ...agentWiring(config, seat), apiBase: inside ? session.sandboxApiBase : session.apiBase });
}
