import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { TrialId } from '../core/ids.ts';
import { gradedScore } from '../core/measures/batch-stats.ts';
import { trialTokens } from '../core/measures/health.ts';
import { addMeters, type MeterTokens } from '../core/measures/meters.ts';
import { samplerSeed } from '../core/random/seeded.ts';
import type { ModelRef, TrialSpec, TrialSummary } from '../core/run/trial.ts';
import { CONTEXT_OVERFLOW } from '../core/tokens/datums.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { Gateway, TokenSampler, TrialRecord } from '../services/gateway/index.ts';
import { type AgentConfig, type HarborRunner, type TrialRun, trialConfig } from '../services/harbor/index.ts';
import { whileBeating } from './beating.ts';
import { configuredRenderer } from './configured-renderer.ts';
import type { ModelAccess } from './model-access.ts';
import type { RunRecord, RunRecords } from './run-records.ts';

/** The outside things a rollout needs. */
export type RolloutDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly models: ModelAccess;
  readonly gateway: Gateway;
  readonly harbor: () => Promise<HarborRunner>;
  /** Where harbor keeps trial folders while they run. */
  readonly trialsDir: string;
  readonly projectRoot: string;
};
export type RolloutActivities = ReturnType<typeof createRolloutActivities>;

export function createRolloutActivities({ records, blobs, models, gateway, harbor, trialsDir, projectRoot }: RolloutDeps) {
  return {
    /** Runs one attempt at one task in a sandbox, its agent talking to `spec.model` through the gateway. Fails (to be tried again) when the model could not be reached. */
    async runTrial(spec: TrialSpec): Promise<TrialSummary> {
      const record = await records.load(spec.run);
      const { attempt } = activityInfo();
      const trialId = (attempt === 1 ? spec.trialId : `${spec.trialId}-a${attempt}`) as TrialId;
      return whileBeating(async () => {
        const contextLimitTokens = await contextLimit(record, spec.model, models);
        await using session = gateway.open(sessionOptions(record, spec, trialId, contextLimitTokens, models));
        const runner = await harbor();
        const outcome = await runner.run(
          trialConfig({
            taskDir: resolve(projectRoot, spec.task.path),
            trialName: trialId,
            trialsDir,
            template: record.jobTemplate,
            agent: agentFor(record, spec, session.apiBase),
            timeouts: { agentMs: record.config.rollout.episode_timeout_s * 1000 },
          }),
          {
            rewardKey: record.config.harbor.reward_key,
            maxTurns: spec.maxTurns,
            secrets: { STILLROOM_GATEWAY_KEY: session.apiKey },
            signal: cancellationSignal(),
          },
        );
        const seen = session.record();
        const failure = seen.failure && seen.failure.afterCalls >= seen.calls ? seen.failure : null;
        if (outcome.executed || failure) await rm(outcome.trialDir, { recursive: true, force: true });
        if (failure) throw ApplicationFailure.retryable(`the model failed during trial ${trialId}: ${failure.message}`, 'ModelUnavailable');
        return summarize(spec, outcome, seen, blobs);
      });
    },
  };
}

function sessionOptions({ config }: RunRecord, spec: TrialSpec, trialId: TrialId, contextLimitTokens: number, models: ModelAccess) {
  return {
    trialId,
    modelName: spec.model.model,
    sampler: seeded(models.tokenSampler(spec.model), spec.trialId),
    renderer: configuredRenderer(config, spec.model.model),
    contextLimitTokens,
    maxTokensPerCall: config.sampling.max_tokens,
    temperature: config.sampling.temperature,
  };
}

/** Seeds each call by trial and call number: siblings differ, and a trial that is run again is offered the same samples. */
function seeded(sampler: TokenSampler, trialId: TrialId): TokenSampler {
  let calls = 0;
  return { version: sampler.version, sample: (request) => sampler.sample({ ...request, seed: samplerSeed(`${trialId} call ${calls++}`) }) };
}

/** What the run asks for, and no more than the service takes. */
async function contextLimit({ config }: RunRecord, model: ModelRef, models: ModelAccess): Promise<number> {
  const limit = await models.contextLimitTokens(model.model);
  return Math.min(config.rollout.context_budget_tokens, limit ?? Number.POSITIVE_INFINITY);
}

function agentFor({ agent, config }: RunRecord, spec: TrialSpec, apiBase: string): AgentConfig {
  const { temperature, max_tokens } = config.sampling;
  const model = { api_base: apiBase, model: spec.model.model, temperature, max_tokens };
  return { import_path: agent.importPath, kwargs: { ...agent.kwargs, ...model, max_turns: spec.maxTurns } };
}

async function summarize(spec: TrialSpec, outcome: TrialRun, seen: TrialRecord, blobs: BlobStore): Promise<TrialSummary> {
  const stopReason = seen.overflow ? CONTEXT_OVERFLOW : outcome.stopReason;
  const episode = { trial: spec.trialId, spans: seen.spans, stopReason };
  const { negLogprobNats, scoredTokens } = trialTokens(seen.spans);
  return {
    trialId: spec.trialId,
    taskId: spec.task.id,
    spans: seen.spans.length > 0 ? await blobs.put(encodeEpisode(episode)) : null,
    reward: outcome.reward,
    executed: outcome.executed,
    passed: outcome.passed,
    retry: outcome.retry,
    gradedScore: gradedScore(outcome.tests),
    exceptionType: outcome.exceptionType,
    exceptionMessage: (outcome.infraReason ?? outcome.exceptionMessage)?.slice(0, 500) ?? null,
    stopReason,
    calls: seen.calls,
    sampledTokens: seen.sampledTokens,
    negLogprobNats,
    scoredTokens,
    maskedTokens: seen.maskedTokens,
    overflow: seen.overflow,
    lengthStops: seen.lengthStops,
    fragments: Object.values(seen.fragments).reduce((sum, count) => sum + count, 0),
    meters: metersOf(spec.who, seen),
    wallMs: outcome.timings.totalMs ?? 0,
  };
}

/** Calls that reached nobody are paid for as well. */
function metersOf(who: 'student' | 'teacher', seen: TrialRecord): MeterTokens {
  const meters = (prefill: number, cached: number, sampled: number): MeterTokens => ({
    [`${who}_prefill`]: prefill,
    [`${who}_cached_prefill`]: cached,
    [`${who}_sample`]: sampled,
  });
  return addMeters(
    meters(seen.promptTokens - seen.cachedPromptTokens, seen.cachedPromptTokens, seen.sampledTokens),
    meters(seen.wasted.promptTokens, 0, seen.wasted.sampledTokens),
  );
}
