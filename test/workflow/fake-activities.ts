import type { BranchCheckActivities } from '../../activities/branch-check.ts';
import type { CheckpointActivities } from '../../activities/checkpoints.ts';
import type { CutOffActivities } from '../../activities/cut-off.ts';
import type { EvaluationActivities } from '../../activities/evaluation.ts';
import type { InputActivities } from '../../activities/inputs.ts';
import type { KeepTrainingActivities } from '../../activities/keep-training.ts';
import type { KeptTrialsActivities } from '../../activities/kept-trials.ts';
import type { MetricsActivities } from '../../activities/metrics.ts';
import type { MirrorActivities } from '../../activities/mirror.ts';
import type { PreflightActivities, SandboxActivities } from '../../activities/preflight.ts';
import type { PromotionActivities } from '../../activities/promotion.ts';
import type { RolloutActivities } from '../../activities/rollouts.ts';
import type { TeacherActivities } from '../../activities/teacher.ts';
import type { TrainingActivities } from '../../activities/training.ts';
import type { WarmupActivities } from '../../activities/warm-up.ts';
import type { WarmupTrainingActivities } from '../../activities/warm-up-training.ts';
import type { SamplerPath, StatePath } from '../../core/ids.ts';
import { addPaid, NO_USAGE, NOTHING_PAID } from '../../core/measures/usage.ts';
import type { GateVerdict } from '../../core/run/results.ts';
import { after, evaluationOf, trainedOf, trainingOf } from '../../core/run/testing/facts.ts';
import { blob, ESTIMATE, evidence, keepList, listed, pinned, playedIn, stepResult, tasksIn, trialFor } from './facts.ts';

export type AllActivities = InputActivities &
  BranchCheckActivities &
  CheckpointActivities &
  CutOffActivities &
  KeptTrialsActivities &
  MetricsActivities &
  EvaluationActivities &
  PromotionActivities &
  MirrorActivities &
  PreflightActivities &
  SandboxActivities &
  RolloutActivities &
  TeacherActivities &
  TrainingActivities &
  KeepTrainingActivities &
  WarmupActivities &
  WarmupTrainingActivities;

/** A world in which everything works: two held-out tasks, the teacher solves all, the student one before and all after. */
export function fakeActivities(over: Partial<AllActivities> = {}): AllActivities {
  return {
    resolveRun: async () => pinned(),
    estimateRun: async () => ESTIMATE,
    checkTasks: async () => undefined,
    listTasks: async ({ tasks }) => tasksIn(tasks),
    drawInterimTasks: async () => listed('a', 'b'),
    drawStepTasks: async () => tasksIn(listed('a', 'b')),
    readBooks: async () => NOTHING_PAID,
    readBatch: async () => NOTHING_PAID,
    readTraining: async () => NO_USAGE,
    keepTrials: async ({ trials }) => keepList(trials),
    tallySpend: async ({ meters }) => ({
      usd: Object.values(meters).reduce((sum, tokens) => sum + tokens, 0) / 100,
      blindTo: [],
      lines: [],
    }),
    checkModels: async () => ({ checks: [{ name: 'renderers', ok: true, detail: 'fine', numbers: {} }], usage: NO_USAGE }),
    checkBranch: async () => ({ name: 'starts from', ok: true, detail: 'fine', numbers: {} }),
    checkSandbox: async () => [{ name: 'dry-run trial', ok: true, detail: 'fine', numbers: {} }],
    runTrial: async (spec) => trialFor(spec),
    scoreEpisode: async ({ trialId, spans }) => ({
      trialId,
      scored: spans,
      candidates: null,
      datums: 1,
      fragments: 0,
      lossTokens: 3,
      overflowDropped: false,
      overlongDropped: false,
      ...NO_USAGE,
      meters: { teacher_prefill: 9 },
      usd: 0,
      trainUsd: 0,
    }),
    openTraining: async () => trainingOf(),
    keepTraining: async () => undefined,
    closeTraining: async () => undefined,
    trainBatch: async ({ training, trials }) => {
      const datums = playedIn(trials).filter(({ score }) => score?.scored).length;
      return {
        training: after(training, 2),
        notices: [],
        trained: trainedOf({ datums, lossTokens: 3 * datums, contextTokens: 0, klTokens: 3 * datums }),
        ...NO_USAGE,
        meters: { student_train: 3 * datums },
        wallMs: 5,
      };
    },
    keepTrajectories: async ({ trials }) => ({ list: blob('trajectories'), ...addPaid(...playedIn(trials).map(({ trial }) => trial)) }),
    gatherWarmup: async () => ({ ref: blob('set'), datums: 4, updateUsd: 0.01, notice: 'warm-up on 4 sequences' }),
    drawWarmup: async ({ update }) => [update % 4, (update + 1) % 4],
    noteWarmup: async () => undefined,
    trainWarmup: async ({ training, places, update }) => ({
      training: after(training, 2),
      notices: [],
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
      ...NO_USAGE,
      meters: { student_train: 3 * places.length },
    }),
    saveSampler: async ({ training, name }) => ({
      path: `tinker://s/sampler_weights/${name}` as SamplerPath,
      training: after(training, 1),
      notices: [],
      ...NO_USAGE,
    }),
    saveState: async ({ training, name }) => ({
      path: `tinker://s/weights/${name}` as StatePath,
      training: after(training, 1),
      notices: [],
      ...NO_USAGE,
    }),
    closeStep: async (order) => stepResult(order),
    closeEvaluation: async ({ label, model, trials: { count: executed } }) => {
      const passed = label === 'student-before' ? 1 : executed;
      return evaluationOf({ label, model, executed, passed, meters: { student_sample: 1 }, usd: 0.01 });
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
    tendCheckpoints: async ({ look, renew, remove }) => ({
      renewed: renew.map(({ path }) => ({ path, outcome: 'done', words: '' })),
      removed: remove.map((path) => ({ path, outcome: 'done', words: '' })),
      found: [...look, ...renew.map(({ path }) => path)].map((path) => ({ path, isListed: true, expires: null })),
      isListRead: true,
    }),
    mirrorRun: async () => undefined,
    ...over,
  };
}
