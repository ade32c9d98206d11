import type { EvaluationActivities } from '../../activities/evaluation.ts';
import type { InputActivities } from '../../activities/inputs.ts';
import type { MetricsActivities } from '../../activities/metrics.ts';
import type { MirrorActivities } from '../../activities/mirror.ts';
import type { PreflightActivities, SandboxActivities } from '../../activities/preflight.ts';
import type { PromotionActivities } from '../../activities/promotion.ts';
import type { RolloutActivities } from '../../activities/rollouts.ts';
import type { TeacherActivities } from '../../activities/teacher.ts';
import type { TrainingActivities } from '../../activities/training.ts';
import type { WarmupActivities } from '../../activities/warm-up.ts';
import type { WarmupTrainingActivities } from '../../activities/warm-up-training.ts';
import type { Evidence } from '../../core/gate/evidence.ts';
import type { BlobRef, SamplerPath, StatePath } from '../../core/ids.ts';
import { metricsRowOf } from '../../core/measures/testing/rows.ts';
import type { PinnedRun, RunPlan } from '../../core/run/pinned-run.ts';
import type { Estimate, EvalResult, GateVerdict, StepResult } from '../../core/run/results.ts';
import type { TrialSpec, TrialSummary } from '../../core/run/trial.ts';

export type AllActivities = InputActivities &
  MetricsActivities &
  EvaluationActivities &
  PromotionActivities &
  MirrorActivities &
  PreflightActivities &
  SandboxActivities &
  RolloutActivities &
  TeacherActivities &
  TrainingActivities &
  WarmupActivities &
  WarmupTrainingActivities;

export const blob = (name: string) => `sha256:${name}` as BlobRef;
export const evidence = (mean: number): Evidence => ({
  n: 2,
  mean,
  pValue: 0.01,
  interval: { low: mean - 0.1, high: mean + 0.1 },
  confidence: 0.95,
  method: 'exact',
});

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
    queues: { rollouts: 'rollouts', training: 'training' },
    ...over,
  };
}

export function pinned(over: Partial<PinnedRun> = {}, planOver: Partial<RunPlan> = {}): PinnedRun {
  const task = (id: string) => ({ id, path: `tasks/${id}`, digest: `sha256:${id}` });
  return {
    runId: 'run',
    runDir: '.stillroom/runs/run',
    trialPrefix: '0123abcd',
    agent: { name: 'turn', ref: 'builtin', hash: 'h', importPath: 'x:Y', kwargs: {} },
    backend: 'local',
    promote: false,
    yes: true,
    plan: plan(planOver),
    train: ['a', 'b', 'c'].map(task),
    holdout: ['x', 'y'].map(task),
    importedBaselines: { teacher: null, student: null },
    protocolHash: 'p',
    warnings: [],
    fileHashes: {},
    ref: blob('run'),
    ...over,
  };
}

export function trialOf(spec: TrialSpec, over: Partial<TrialSummary> = {}): TrialSummary {
  return {
    trialId: spec.trialId,
    taskId: spec.task.id,
    spans: blob(spec.trialId),
    reward: 1,
    executed: true,
    passed: true,
    retry: over.executed === false ? 'again' : 'never',
    gradedScore: null,
    exceptionType: null,
    exceptionMessage: null,
    stopReason: 'submitted',
    calls: 1,
    truncatedCalls: 0,
    sampledTokens: 3,
    negLogprobNats: 1,
    scoredTokens: 3,
    maskedTokens: 0,
    overflow: false,
    lengthStops: 0,
    fragments: 1,
    meters: { student_sample: 3 },
    wallMs: 5,
    ...over,
  };
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

/** A world in which everything works: two held-out tasks, the teacher solves all, the student one before and all after. */
export function fakeActivities(over: Partial<AllActivities> = {}): AllActivities {
  return {
    resolveRun: async () => pinned(),
    estimateRun: async () => ESTIMATE,
    checkTasks: async () => undefined,
    drawInterimTasks: async () => pinned().train.slice(0, 2),
    drawStepTasks: async () => pinned().train.slice(0, 2),
    tallySpend: async ({ meters }) => ({
      usd: Object.values(meters).reduce((sum, tokens) => sum + tokens, 0) / 100,
      blindTo: [],
      lines: [],
    }),
    checkModels: async () => [{ name: 'renderers', ok: true, detail: 'fine', numbers: {} }],
    checkSandbox: async () => [{ name: 'dry-run trial', ok: true, detail: 'fine', numbers: {} }],
    runTrial: async (spec) => trialOf(spec),
    scoreEpisode: async ({ trialId, spans }) => ({
      trialId,
      scored: spans,
      candidates: null,
      datums: 1,
      fragments: 0,
      lossTokens: 3,
      overflowDropped: false,
      overlongDropped: false,
      meters: { teacher_prefill: 9 },
    }),
    openTraining: async () => ({ sessionId: 's', modelId: 's:train:0', nextSeqId: 1 }),
    trainBatch: async ({ training, episodes }) => ({
      nextSeqId: training.nextSeqId + 2,
      trained: {
        datums: episodes.length,
        lossTokens: 3 * episodes.length,
        contextTokens: 0,
        losses: [1],
        gradNorms: [1],
        reverseKlNatsPerToken: 0.5,
        klTokens: 3 * episodes.length,
        advantageMean: -0.5,
        advantageStd: 0.1,
        clippedTokens: 0,
        mismatchDrops: 0,
      },
      meters: { student_train: 3 * episodes.length },
      wallMs: 5,
    }),
    keepTrajectories: async () => blob('trajectories'),
    gatherWarmup: async () => ({ ref: blob('set'), datums: 4, updateUsd: 0.01, notice: 'warm-up on 4 sequences' }),
    drawWarmup: async ({ update }) => [update % 4, (update + 1) % 4],
    noteWarmup: async () => undefined,
    trainWarmup: async ({ training, places, update }) => ({
      nextSeqId: training.nextSeqId + 2,
      row: {
        update,
        datums: places.length,
        loss_tokens: 3 * places.length,
        context_tokens: 0,
        learning_rate: 1e-4,
        loss_nats: 3 / update,
        loss_nats_per_token: 1 / update,
        grad_norm: 1,
        student_train_tokens: 3 * places.length,
        usd: 0.01,
        wall_ms: 5,
      },
      meters: { student_train: 3 * places.length },
    }),
    saveSampler: async ({ training, name }) => ({
      path: `tinker://s/sampler_weights/${name}` as SamplerPath,
      nextSeqId: training.nextSeqId + 1,
    }),
    saveState: async ({ training, name }) => ({ path: `tinker://s/weights/${name}` as StatePath, nextSeqId: training.nextSeqId + 1 }),
    closeStep: async ({ step, sampler, trials, train, guard }) => stepResult(step, sampler.version, trials.length, train.nextSeqId, guard),
    closeEvaluation: async ({ label, model, trials }): Promise<EvalResult> => {
      const passed = label === 'student-before' ? 1 : trials.length;
      return {
        label,
        source: 'measured',
        model,
        trials: trials.length,
        executed: trials.length,
        passed,
        infraFailed: 0,
        solveRate: passed / trials.length,
        perTask: [],
        meters: { student_sample: 1 },
        usd: 0.01,
        wallMs: 5,
      };
    },
    compareTeacher: async () => evidence(0.5),
    decideGate: async ({ teacher, before, after }): Promise<GateVerdict> => ({
      accepted: true,
      reasons: [],
      threshold: 0.7,
      teacher: teacher.solveRate ?? 0,
      before: before.solveRate ?? 0,
      after: after.solveRate ?? 0,
      improvement: evidence(0.5),
      overThreshold: evidence(0.3),
      protocolHash: 'p',
      earlierGates: 0,
    }),
    writeHandoff: async () => ({ path: 'runs/run/handoff.toml', toml: '' }),
    writeAdapter: async () => ({ name: 'turn', version: 1, path: 'adapters/turn/v1' }),
    promoteAdapter: async () => ({ keyVariable: 'OPENAI_API_KEY' }),
    mirrorRun: async () => undefined,
    ...over,
  };
}

export function stepResult(
  step: number,
  sampler: string,
  trials: number,
  nextSeqId: number,
  guard: StepResult['guard'],
  over: Partial<StepResult> = {},
): StepResult {
  return {
    row: metricsRowOf({ step, sampler, trials, executed_trials: trials, passed_trials: trials, solve_rate: 1, usd: 0.03 * trials }),
    meters: { student_sample: 3 * trials },
    nextSeqId,
    guard,
    kill: null,
    starved: false,
    ...over,
  };
}
