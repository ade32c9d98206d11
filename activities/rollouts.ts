import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { TrialId } from '../core/ids.ts';
import { gradedScore } from '../core/measures/batch-stats.ts';
import { rolloutMeters } from '../core/measures/billing.ts';
import { addMeters } from '../core/measures/meters.ts';
import { spendOf } from '../core/measures/spend.ts';
import { trialFigures } from '../core/measures/trial-figures.ts';
import type { Paid } from '../core/measures/usage.ts';
import { mostTokens, type TrialUse, tokenPrices } from '../core/money/trial-limit.ts';
import { samplerSeed } from '../core/random/seeded.ts';
import type { ModelRef, TrialSpec, TrialSummary } from '../core/run/trial.ts';
import { CONTEXT_OVERFLOW } from '../core/tokens/datums.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { Gateway, GatewaySession, TokenSampler, TrialRecord } from '../services/gateway/index.ts';
import { type AgentConfig, type HarborRunner, TrialCrashed, type TrialRun, trialConfig } from '../services/harbor/index.ts';
import { whileBeating } from './beating.ts';
import { billingPause } from './billing.ts';
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

export function createRolloutActivities(deps: RolloutDeps) {
  const { records, blobs, models, gateway } = deps;
  return {
    /** Runs one attempt at one task in a sandbox, its agent talking to `spec.model` through the gateway. Fails (to be tried again) when the model could not be reached. */
    async runTrial(spec: TrialSpec): Promise<TrialSummary> {
      const record = await records.load(spec.run);
      const { attempt } = activityInfo();
      const trialId = (attempt === 1 ? spec.trialId : `${spec.trialId}-a${attempt}`) as TrialId;
      return whileBeating(async () => {
        const contextLimitTokens = await contextLimit(record, spec.model, models);
        await using session = gateway.open(sessionOptions(record, spec, trialId, contextLimitTokens, models));
        const run = await harborTrial(record, spec, trialId, session, deps).catch((error) => {
          if (!cancellationSignal().aborted) throw error;
          // What it took is paid for, though nothing is made of it.
          throw new CancelledFailure(`trial ${trialId} was cancelled`, [paidIn(session.record(), record, spec)]);
        });
        const seen = session.record();
        const failure = seen.failure && seen.failure.afterCalls >= seen.calls ? seen.failure : null;
        if (run.trialDir !== null && (run.outcome.executed || failure)) await rm(run.trialDir, { recursive: true, force: true });
        if (!failure) return summarize(record, spec, run.outcome, seen, blobs);
        const told = `the model failed during trial ${trialId}: ${failure.message}`;
        if (failure.kind === 'unpaid') throw billingPause(told, paidIn(seen, record, spec));
        const mayPass = failure.kind === 'busy' || failure.kind === 'unavailable' || attempt < ATTEMPTS_AT_A_FAILING_MODEL;
        if (mayPass) throw ApplicationFailure.retryable(told, 'ModelUnavailable');
        return summarize(record, spec, notRun('ModelUnavailable', told), seen, blobs);
      }, models.longestWait);
    },
  };
}

/** A model that answers wrongly is not asked for ever: each attempt is paid for. One that cannot be reached now is waited for. */
const ATTEMPTS_AT_A_FAILING_MODEL = 3;

/** What of harbor's outcome the run keeps. */
type Outcome = Pick<
  TrialRun,
  'reward' | 'executed' | 'passed' | 'retry' | 'exceptionType' | 'exceptionMessage' | 'infraReason' | 'stopReason'
> & {
  readonly gradedScore: number | null;
  readonly totalMs: number | null;
};

/** Runs the trial in harbor. One that ends without a readable result is infra-failed, with what it sampled still paid for. */
async function harborTrial(
  record: RunRecord,
  spec: TrialSpec,
  trialId: TrialId,
  session: GatewaySession,
  { harbor, trialsDir, projectRoot }: RolloutDeps,
): Promise<{ outcome: Outcome; trialDir: string | null }> {
  const runner = await harbor();
  const config = trialConfig({
    taskDir: resolve(projectRoot, spec.task.path),
    trialName: trialId,
    trialsDir,
    template: record.jobTemplate,
    agent: agentFor(record, spec, session.apiBase),
    timeouts: { agentMs: record.config.rollout.episode_timeout_s * 1000 },
  });
  const signal = cancellationSignal();
  try {
    const { trialDir, ...run } = await runner.run(config, {
      rewardKey: record.config.harbor.reward_key,
      maxTurns: spec.maxTurns,
      secrets: { STILLROOM_GATEWAY_KEY: session.apiKey },
      signal,
    });
    return { outcome: { ...run, gradedScore: gradedScore(run.tests), totalMs: run.timings.totalMs }, trialDir };
  } catch (error) {
    if (!(error instanceof TrialCrashed) || signal.aborted) throw error;
    return { outcome: notRun(error.name, error.message), trialDir: null };
  }
}

function notRun(exceptionType: string, message: string): Outcome {
  return {
    reward: null,
    executed: false,
    passed: false,
    retry: 'again',
    exceptionType,
    exceptionMessage: message,
    infraReason: message,
    stopReason: null,
    gradedScore: null,
    totalMs: null,
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
    ...spendLimitOf(config, spec),
  };
}

/** The config's limit for one trial; a training trial must leave room for its scores and its training. */
function spendLimitOf({ budget, pricing, train }: RunRecord['config'], { who, trains }: TrialSpec) {
  const limitUsd = budget.max_usd_per_trial;
  if (limitUsd === null) return {};
  const prices = tokenPrices(pricing, who, trains ? train : null);
  return { spendLimit: { limitUsd, mostTokens: (use: TrialUse) => mostTokens(limitUsd, prices, use) } };
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

async function summarize(record: RunRecord, spec: TrialSpec, outcome: Outcome, seen: TrialRecord, blobs: BlobStore): Promise<TrialSummary> {
  const stopReason = seen.overflow ? CONTEXT_OVERFLOW : seen.usdLimited ? USD_LIMIT : outcome.stopReason;
  const { spans } = seen;
  const figures = trialFigures(spans, { maxTokens: record.config.sampling.max_tokens, who: spec.who });
  return {
    ...figures,
    trialId: spec.trialId,
    taskId: spec.task.id,
    spans: spans.length > 0 ? await blobs.of(record.runId).put(encodeEpisode({ trial: spec.trialId, spans, stopReason })) : null,
    reward: outcome.reward,
    executed: outcome.executed,
    passed: outcome.passed,
    retry: outcome.retry,
    gradedScore: outcome.gradedScore,
    exceptionType: outcome.exceptionType,
    exceptionMessage: (outcome.infraReason ?? outcome.exceptionMessage)?.slice(0, 500) ?? null,
    stopReason,
    maskedTokens: seen.maskedTokens,
    overflow: seen.overflow,
    lengthStops: seen.lengthStops,
    fragments: Object.values(seen.fragments).reduce((sum, count) => sum + count, 0),
    ...paidIn(seen, record, spec),
    wallMs: outcome.totalMs ?? 0,
  };
}

/** The stop reason of a trial that had used up `budget.max_usd_per_trial`. It is graded as it stands, and trained on. */
const USD_LIMIT = 'usd_limit';

/** What the trial took of the service; what reached nobody is paid for as well. */
function paidIn({ spans, wasted }: TrialRecord, { config }: RunRecord, { who }: TrialSpec): Paid {
  const { meters: heard, sent } = trialFigures(spans, { maxTokens: config.sampling.max_tokens, who });
  const unheard = { uniqueTokens: wasted.promptTokens + wasted.sampledTokens, cachedTokens: 0, sampledTokens: wasted.sampledTokens };
  const meters = addMeters(heard, rolloutMeters(unheard, who));
  return {
    meters,
    sent: {
      ...sent,
      promptTokens: sent.promptTokens + wasted.promptTokens,
      sampledTokens: sent.sampledTokens + wasted.sampledTokens,
    },
    lost: [],
    usd: spendOf(config.pricing, meters).usd,
  };
}
