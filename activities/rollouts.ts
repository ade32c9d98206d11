import { join } from 'node:path';
import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { gradedScore } from '../core/measures/batch-stats.ts';
import type { TrialSpec, TrialSummary } from '../core/run/trial.ts';
import { trialLimits } from '../core/run/trial-time.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { Gateway, GatewaySession, ModelFailure, TrialRecord } from '../services/gateway/index.ts';
import {
  type HarborRunner,
  RunnerDied,
  removeTree,
  type TaskCache,
  TrialCrashed,
  type TrialMemory,
  trialConfig,
} from '../services/harbor/index.ts';
import { whileBeating } from './beating.ts';
import { billingPause } from './billing.ts';
import { attemptSignal, workerShutdown } from './handover.ts';
import { keepFiles } from './keep-files.ts';
import { MemoryTurn } from './memory-turn.ts';
import type { ModelAccess } from './model-access.ts';
import { openBook, type PaidCalls, unforked } from './paid-calls.ts';
import { openTask } from './pinned-tasks.ts';
import type { RendererOf } from './renderers.ts';
import type { RunRecord, RunRecords } from './run-records.ts';
import { agentFor, sessionOptions } from './trial-session.ts';
import { notRun, type Outcome, paidIn, summarize } from './trial-summary.ts';

/** The outside things a rollout needs. */
export type RolloutDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly objects: ObjectStore;
  readonly models: ModelAccess;
  readonly rendererOf: RendererOf;
  readonly gateway: Gateway;
  readonly harbor: () => Promise<Pick<HarborRunner, 'run'>>;
  /** Where harbor keeps the folder of the next trial while it runs; fails where there is no room. */
  readonly trialsDir: () => Promise<string>;
  readonly memory: Pick<TrialMemory, 'turn'>;
  /** Values of the runner's environment that must not be in what a trial leaves. */
  readonly runnerSecrets: readonly string[];
  readonly tasks: TaskCache;
  /** Aborts when this worker is told to end: its trials are handed over. */
  readonly drain: AbortSignal;
};
export type RolloutActivities = ReturnType<typeof createRolloutActivities>;

export function createRolloutActivities(deps: RolloutDeps) {
  const { records, objects, models, memory, drain } = deps;
  return {
    /**
     * Runs one attempt at one task in a sandbox, its agent talking to `spec.model` through the gateway. When an earlier attempt at the
     * same trial died, its model calls are answered from the trial's book as long as they are the same; a trial that it finished is not run
     * again. Fails (to be tried again) when the model could not be reached, or the worker is told to end.
     */
    async runTrial(spec: TrialSpec): Promise<TrialSummary> {
      const record = await records.load(spec.run);
      const turn = new MemoryTurn(memory, drain);
      const work = async () => {
        if (drain.aborted) throw workerShutdown();
        const calls = await openBook(objects, record.runId, { of: spec.trialId, kind: 'sample' });
        // No schema: `finish` below entered it, in this form.
        if (calls.finished) return calls.finished.result as TrialSummary;
        await turn.begun();
        return runAttempt(record, spec, calls, turn, deps);
      };
      try {
        return await whileBeating(
          () => unforked(work),
          () => turn.wait() ?? models.longestWait(),
        );
      } finally {
        turn.end();
      }
    },
  };
}

async function runAttempt(
  record: RunRecord,
  spec: TrialSpec,
  calls: PaidCalls,
  { used }: MemoryTurn,
  deps: RolloutDeps,
): Promise<TrialSummary> {
  const { blobs, gateway, drain } = deps;
  const name = calls.epoch === 1 ? spec.trialId : (`${spec.trialId}-a${calls.epoch}` as typeof spec.trialId);
  const trialsDir = await deps.trialsDir();
  await using session = gateway.open(await sessionOptions(record, spec, name, calls, deps));
  using attempt = attemptSignal(drain, calls);
  const attempted = { record, spec, name, trialsDir, session, calls, signal: attempt.signal, used };
  try {
    const outcome = await harborTrial(attempted, deps);
    await session[Symbol.asyncDispose]();
    await calls.quiet();
    if (calls.stale) throw calls.stale;
    const seen = session.record();
    const ended = (await afterFailure(attempted, seen)) ?? outcome;
    const summary = await summarize(record, spec, ended, seen, calls, blobs);
    return await calls.finish({ ...summary, files: await keepFiles(attempted, summary, deps) });
  } catch (error) {
    if (!cancellationSignal().aborted || drain.aborted) throw error;
    await session[Symbol.asyncDispose]();
    await calls.quiet();
    // What it took is paid for, though nothing is made of it.
    throw new CancelledFailure(`trial ${name} was cancelled`, [paidIn(record, spec, session.record(), calls)]);
  } finally {
    await removeTree(join(trialsDir, name));
  }
}

/** One attempt at a trial, with what it runs in. */
export type Attempt = {
  readonly record: RunRecord;
  readonly spec: TrialSpec;
  /** Of the trial's folder and its sandbox: another one in each attempt. */
  readonly name: TrialSpec['trialId'];
  readonly trialsDir: string;
  readonly session: GatewaySession;
  readonly calls: PaidCalls;
  readonly signal: AbortSignal;
  readonly used: (bytes: number) => void;
};

/** What a model's failure makes of the trial: null where it had none that lasted. Throws to have another attempt made. */
async function afterFailure({ record, spec, name, calls }: Attempt, seen: TrialRecord): Promise<Outcome | null> {
  const failure = lastingFailure(seen);
  if (failure === null) return null;
  const told = `the model failed during trial ${name}: ${failure.message}`;
  if (failure.kind === 'unpaid') throw billingPause(told, paidIn(record, spec, seen, calls));
  await tryAgainLater(failure, told, calls);
  return notRun('ModelUnavailable', told);
}

/** An error on the model's side that the agent did not get over. */
function lastingFailure({ failure, calls }: TrialRecord): ModelFailure | null {
  return failure && failure.afterCalls >= calls ? failure : null;
}

/** A model that answers wrongly is not asked for ever: each attempt is paid for. One that cannot be reached now is waited for. */
const ATTEMPTS_AT_A_FAILING_MODEL = 3;

/** Ends the attempt so that another one is made, unless enough were. */
async function tryAgainLater({ kind }: ModelFailure, told: string, calls: PaidCalls): Promise<void> {
  const mayPass = kind === 'busy' || kind === 'unavailable';
  if (!mayPass && calls.failures + 1 >= ATTEMPTS_AT_A_FAILING_MODEL) return;
  if (!mayPass) await calls.noteFailing();
  throw ApplicationFailure.retryable(told, 'ModelUnavailable');
}

/** A trial whose runner died so often is perhaps what kills it, or no runner can live here. */
const MOST_RUNNER_DEATHS = 3;

/** Runs the trial in harbor. One that ends without a readable result is infra-failed, with what it sampled still paid for. */
async function harborTrial(attempt: Attempt, { gateway, harbor, models, tasks }: RolloutDeps): Promise<Outcome> {
  const { record, spec, name: trialName, trialsDir, session, calls, signal } = attempt;
  const runner = await harbor();
  const config = trialConfig({
    taskDir: await openTask(tasks, spec.task, signal),
    trialName,
    trialsDir,
    template: record.jobTemplate,
    agent: await agentFor(record, spec, session, models),
    timeouts: { agentMs: record.config.rollout.episode_timeout_s * 1000 },
  });
  try {
    const run = await runner.run(config, {
      rewardKey: record.config.harbor.reward_key,
      maxTurns: spec.maxTurns,
      secrets: { STILLROOM_GATEWAY_KEY: session.apiKey },
      gatewayUrl: gateway.localUrl,
      limits: trialLimits(config.agent.override_timeout_sec * 1000),
      signal,
      onMemory: attempt.used,
    });
    return { ...run, gradedScore: gradedScore(run.tests), totalMs: run.timings.totalMs };
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof RunnerDied && calls.runnerDeaths + 1 < MOST_RUNNER_DEATHS) {
      await calls.noteRunnerDeath();
      throw error;
    }
    if (!(error instanceof TrialCrashed || error instanceof RunnerDied)) throw error;
    return notRun(error.name, error.message);
  }
}
