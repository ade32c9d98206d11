import type { MetricsActivities } from '../../activities/metrics.ts';
import type { Evidence } from '../../core/gate/evidence.ts';
import type { BlobRef } from '../../core/ids.ts';
import { metricsRowOf } from '../../core/measures/testing/rows.ts';
import { NO_USAGE } from '../../core/measures/usage.ts';
import type { KeptTrials, PlayedSlot } from '../../core/run/kept-trials.ts';
import type { PinnedRun, RunPlan } from '../../core/run/pinned-run.ts';
import type { Estimate, StepResult } from '../../core/run/results.ts';
import { inSlotOrder } from '../../core/run/slots.ts';
import { trialOf } from '../../core/run/testing/facts.ts';
import type { PinnedTask, TaskList, TrialSpec, TrialSummary } from '../../core/run/trial.ts';

export const blob = (name: string) => `sha256:${name}` as BlobRef;
export const evidence = (mean: number): Evidence => ({
  n: 2,
  mean,
  pValue: 0.01,
  interval: { low: mean - 0.1, high: mean + 0.1 },
  confidence: 0.95,
  method: 'exact',
});

/** A list of tasks that says itself which they are. */
export const listed = (...ids: readonly string[]): TaskList => ({ ref: blob(`tasks ${ids.join(' ')}`), count: ids.length });
export const task = (id: string): PinnedTask => ({ id, path: `tasks/${id}`, digest: `sha256:${id}` });
export const tasksIn = ({ ref }: TaskList): PinnedTask[] => ref.split(' ').slice(1).map(task);

/** What fakes put into the blob store of a batch. */
const lists = new Map<BlobRef, readonly PlayedSlot[]>();
export function keepList(trials: readonly PlayedSlot[], ref = blob(`list ${lists.size}`)): BlobRef {
  lists.set(ref, trials);
  return ref;
}
/** The trials of a batch, in the order of their slots. */
export const playedIn = ({ lists: refs }: KeptTrials): PlayedSlot[] => inSlotOrder(refs.flatMap((ref) => lists.get(ref) ?? []));

export function plan(over: Partial<RunPlan> = {}): RunPlan {
  return {
    student: { kind: 'base', model: 'student', version: 'student' },
    teacher: { kind: 'base', model: 'teacher', version: 'teacher' },
    steps: 2,
    tasksPerBatch: 2,
    groupSize: 2,
    trialConcurrency: 2,
    samplerRefreshEvery: 1,
    saveStateEvery: 1,
    infraRetries: 1,
    maxTurns: 5,
    rolloutMaxTurns: 5,
    episodeTimeoutMs: 1000,
    gateK: 1,
    interim: { every: 0, tasks: 2, k: 1 },
    deferBaselines: false,
    warmup: { steps: 0, rolloutsPerTask: 1, loaded: false },
    maxUsd: null,
    reserves: { limitUsd: null, estimatedUsd: { training: 0.03, student: 0.03, teacher: 0.03 } },
    checkpoints: { ttlSeconds: null, keepLast: null },
    queues: { rollouts: 'rollouts', training: 'training' },
    ...over,
  };
}

export function pinned(over: Partial<PinnedRun> = {}, planOver: Partial<RunPlan> = {}): PinnedRun {
  return {
    runId: 'run',
    runDir: '.stillroom/runs/run',
    trialPrefix: '0123abcd',
    agent: { name: 'turn', ref: 'builtin', hash: 'h', runtime: 'turn', kwargs: {}, env: {} },
    backend: 'local',
    promote: false,
    yes: true,
    plan: plan(planOver),
    train: listed('a', 'b', 'c'),
    holdout: listed('x', 'y'),
    branch: null,
    importedBaselines: { teacher: null, student: null },
    protocolHash: 'p',
    warnings: [],
    fileHashes: {},
    ref: blob('run'),
    ...over,
  };
}

/** A trial that went well, but for what the test names. One whose infrastructure failed is worth another try. */
export function trialFor({ trialId, task }: TrialSpec, over: Partial<TrialSummary> = {}): TrialSummary {
  const tokens = { sampledTokens: 3, negLogprobNats: 1, scoredTokens: 3, meters: { student_sample: 3 }, usd: 0.03 };
  const retry = over.executed === false ? 'again' : 'never';
  return trialOf({ trialId, taskId: task.id, spans: blob(trialId), retry, ...tokens, ...over });
}

/** A run that is priced in full. */
export const ESTIMATE: Estimate = {
  lines: [],
  pricedUsd: 1,
  unpricedMeters: [],
  fullyPriced: true,
  pricingIsComplete: true,
  trainEpisodes: 8,
  evalEpisodes: 0,
  baselineEpisodes: 6,
  warmupEpisodes: 0,
};

/** A step that went well, but for what the test names. */
export function stepResult(
  { step, sampler, trials: { count: trials }, train, guard }: Parameters<MetricsActivities['closeStep']>[0],
  over: Partial<StepResult> = {},
): StepResult {
  const counts = { trials, executed_trials: trials, passed_trials: trials, solve_rate: 1 };
  return {
    row: metricsRowOf({ step, sampler: sampler.version, ...counts, usd: 0.03 * trials }),
    ...NO_USAGE,
    meters: { student_sample: 3 * trials },
    trialUsd: 0.03,
    training: train.training,
    guard,
    kill: null,
    starved: false,
    ...over,
  };
}
