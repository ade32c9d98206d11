import { Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { NO_USAGE } from '../../core/measures/usage.ts';
import type { PinnedRun, RunPlan } from '../../core/run/pinned-run.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import type { distill } from '../../workflows/distill.ts';
import { type RunStatus, statusQuery } from '../../workflows/messages.ts';
import { ESTIMATE, evidence, pinned, stepResult, trialFor } from '../workflow/facts.ts';
import { type AllActivities, fakeActivities } from '../workflow/fake-activities.ts';
import { until } from './until.ts';

type Run = WorkflowHandle<typeof distill>;

/** A run that is recorded: what its activities answer, and what a person does to it until its history shows what it is kept for. */
export type Scenario = {
  readonly shows: string;
  readonly activities?: Partial<AllActivities>;
  readonly drive: (run: Run) => Promise<unknown>;
  /** Children whose histories are kept too, by what follows the run's id. */
  readonly children?: readonly string[];
  /** Its histories grow long after few events, so that they go on in new executions. */
  readonly long?: true;
  readonly input?: unknown;
  /** The workflow that is started, if it is not a run. */
  readonly workflow?: 'tidyCheckpoints';
};

const by = { by: 'recorder' };

/** A run as it is resolved, under its own id, but for what a scenario names. */
export const resolved =
  (plan: Partial<RunPlan> = {}, over: Partial<PinnedRun> = {}): AllActivities['resolveRun'] =>
  async ({ runId }) =>
    pinned({ runId, ...over }, plan);
const unpriced: AllActivities['estimateRun'] = async () => ({ ...ESTIMATE, unpricedMeters: ['teacher_prefill'], fullyPriced: false });
const asks = { resolveRun: resolved({}, { yes: false }) };
const promotes = { resolveRun: resolved({ steps: 1 }, { promote: true }) };

const result = (run: Run) => run.result();
const failed = (run: Run) => run.result().catch(() => {});
const answer = (run: Run, name: string, more = {}) => run.executeUpdate(name, { args: [{ ...by, ...more }] });
const status = (run: Run, test: (status: RunStatus) => boolean) => until(async () => test(await run.query(statusQuery)));
const waits = (kind: string) => (run: Run) => status(run, ({ waitingFor }) => waitingFor?.kind === kind);
const inStep = (step: number) => (run: Run) => status(run, ({ child }) => child?.label === `step ${step}`);
const asked = (kind: string, name: string, more?: object) => async (run: Run) => {
  await waits(kind)(run);
  await answer(run, name, more);
  await result(run);
};

/** Trials of the second step, but for its first, run until they are cancelled. */
const heldInStep2: AllActivities['runTrial'] = async (spec) => {
  if (!spec.trialId.includes('-s0002') || spec.trialId.endsWith('-000-0')) return trialFor(spec);
  const activity = Context.current();
  const beat = setInterval(() => activity.heartbeat(), 100);
  return activity.cancelled.finally(() => clearInterval(beat));
};
const infraFailsOnce: AllActivities['runTrial'] = async (spec) =>
  trialFor(spec, spec.trialId.endsWith('-s0001-000-0') ? { executed: false, passed: false, reward: null } : {});
const rejects: AllActivities['decideGate'] = async (order) => ({
  ...(await fakeActivities().decideGate(order)),
  accepted: false,
  reasons: ['below the threshold'],
});
const kills: AllActivities['closeStep'] = async (order) => stepResult(order, order.step === 2 ? { kill: 'entropy' } : {});
const starves: AllActivities['closeStep'] = async (order) => {
  const emptyStreak = order.guard.emptyStreak + 1;
  return stepResult(order, { guard: { ...order.guard, emptyStreak }, starved: emptyStreak === 2 });
};

const interim = { every: 1, tasks: 2, k: 2 };
const warmup = { steps: 2, rolloutsPerTask: 2, loaded: false };
const imported = { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') };

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  promoted: {
    shows: 'a run that asks for nothing but the promotion, which a person approves',
    activities: promotes,
    drive: asked('promotion', 'decidePromotion', { approve: true }),
    children: ['step-0001', 'eval-teacher', 'eval-student-after'],
  },
  accepted: {
    shows: 'a cost that is confirmed, after a signal that came too early; a trial that was tried again; no promotion wanted',
    activities: { ...asks, runTrial: infraFailsOnce },
    drive: async (run) => {
      await run.signal('promote', { ...by, approve: true });
      await asked('cost', 'confirmCost')(run);
    },
    children: ['step-0001'],
  },
  'promotion-declined': {
    shows: 'a promotion that a person declines',
    activities: promotes,
    drive: asked('promotion', 'decidePromotion', { approve: false }),
  },
  rejected: { shows: 'a gate that rejects', activities: { decideGate: rejects }, drive: result },
  declined: { shows: 'a cost that is declined', activities: asks, drive: asked('cost', 'declineCost') },
  'no-better-teacher': {
    shows: 'a teacher no better than the student, and a person who trains anyway',
    activities: { compareTeacher: async () => evidence(0.05) },
    drive: asked('teacher', 'continueAnyway'),
  },
  'budget-raised': {
    shows: 'a cap that is reached and raised',
    activities: { resolveRun: resolved({ maxUsd: 0.2 }) },
    drive: asked('budget', 'setBudget', { maxUsd: 10 }),
  },
  stopped: {
    shows: 'a run stopped by a person in the middle of its second step',
    activities: { runTrial: heldInStep2 },
    drive: async (run) => {
      await inStep(2)(run);
      await answer(run, 'stop');
      await result(run);
    },
    children: ['step-0002'],
  },
  cancelled: {
    shows: 'a run cancelled in the middle of its second step',
    activities: { runTrial: heldInStep2 },
    drive: async (run) => {
      await inStep(2)(run);
      await run.cancel();
      await failed(run);
    },
  },
  tripwire: { shows: 'a run that the tripwire stops', activities: { closeStep: kills, resolveRun: resolved({ steps: 4 }) }, drive: result },
  starved: { shows: 'two empty batches in a row', activities: { closeStep: starves, resolveRun: resolved({ steps: 4 }) }, drive: result },
  'bad-input': { shows: 'input that is refused', drive: failed, input: { agent: 'turn' } },
  'broken-benchmark': {
    shows: 'a dry run that fails, before a model is asked',
    activities: { checkSandbox: async () => [{ name: 'dry-run trial', ok: false, detail: 'task a: no reward', numbers: {} }] },
    drive: failed,
  },
  'preflight-failed': {
    shows: 'a preflight check that fails',
    activities: {
      checkModels: async () => ({
        checks: [{ name: 'vocabulary', ok: false, detail: 'id 5 differs', numbers: { id: 5 } }],
        usage: NO_USAGE,
      }),
    },
    drive: failed,
  },
  'evaluation-failed': {
    shows: 'an evaluation, and with it its run, that executed nothing',
    activities: {
      closeEvaluation: async (): Promise<never> => {
        throw ApplicationFailure.nonRetryable('none of 2 trials was executed', 'NothingExecuted');
      },
    },
    drive: failed,
    children: ['eval-teacher'],
  },
  'warm-up': {
    shows: 'a warm-up on what the teacher did',
    activities: { resolveRun: resolved({ steps: 1, warmup }) },
    drive: result,
    children: ['warmup'],
  },
  'interim-evaluations': {
    shows: 'an evaluation after each step',
    activities: { resolveRun: resolved({ interim }) },
    drive: result,
    children: ['eval-interim-0002'],
  },
  'imported-baselines': {
    shows: 'baselines of an earlier run',
    activities: { resolveRun: resolved({ steps: 1 }, { importedBaselines: imported }) },
    drive: result,
  },
  'deferred-baseline': {
    shows: 'a teacher that is measured after training',
    activities: { resolveRun: resolved({ steps: 1, deferBaselines: true }) },
    drive: result,
  },
  'waiting-for-cost': {
    shows: 'an open run that waits for its cost to be confirmed',
    activities: { ...asks, estimateRun: unpriced },
    drive: waits('cost'),
  },
  'waiting-for-teacher': {
    shows: 'an open run that waits because the teacher is no better',
    activities: { compareTeacher: async () => evidence(0.05) },
    drive: waits('teacher'),
  },
  'waiting-for-budget': {
    shows: 'an open run that waits at its cap, its second step handed back',
    activities: { resolveRun: resolved({ maxUsd: 0.2 }) },
    drive: waits('budget'),
  },
  'waiting-for-approval': { shows: 'an open run that waits for its promotion', activities: promotes, drive: waits('promotion') },
  paused: {
    shows: 'an open run that a person paused',
    activities: asks,
    drive: async (run) => {
      await waits('cost')(run);
      await answer(run, 'pause');
      await answer(run, 'confirmCost');
      await waits('pause')(run);
    },
  },
  'in-mid-step': {
    shows: 'an open run, trials of its second step in flight',
    activities: { runTrial: heldInStep2 },
    drive: inStep(2),
    children: ['step-0002'],
  },
  continued: {
    shows: 'a long run that went on in new executions, and so did its steps',
    activities: { resolveRun: resolved({ steps: 4, groupSize: 8, interim: { every: 2, tasks: 2, k: 6 } }, { yes: false }) },
    drive: asked('cost', 'confirmCost'),
    children: ['step-0002', 'eval-interim-0002'],
    long: true,
  },
  'continued-warm-up': {
    shows: 'a long warm-up that went on in new executions, and so did the collection for it',
    activities: { resolveRun: resolved({ steps: 1, warmup: { ...warmup, steps: 12, rolloutsPerTask: 6 } }) },
    drive: result,
    children: ['warmup'],
    long: true,
  },
  tidied: {
    shows: 'checkpoints of a run that has ended, of which one is deleted',
    drive: result,
    workflow: 'tidyCheckpoints',
    input: { look: ['tinker://s/weights/step-0001'], remove: ['tinker://s/sampler_weights/step-0001'] },
  },
  'waiting-in-a-new-execution': {
    shows: 'an open run that waits for its promotion in a later execution',
    activities: { resolveRun: resolved({ steps: 4, groupSize: 2 }, { promote: true }) },
    drive: waits('promotion'),
    long: true,
  },
};
