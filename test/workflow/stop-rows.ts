import { ApplicationFailure } from '@temporalio/common';
import type { PinnedRun, RunPlan } from '../../core/run/pinned-run.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import type { TrialSpec } from '../../core/run/trial.ts';
import { evidence, trialFor } from './facts.ts';
import type { AllActivities } from './fake-activities.ts';
import type { Hold } from './held-world.ts';

/** Where a run is when it is stopped or cancelled, and what must come of it. */
export type StopRow = {
  readonly where: string;
  readonly hold?: Hold;
  /** What the run waits for, where nothing is held up. */
  readonly waits?: string;
  readonly run?: Partial<PinnedRun>;
  readonly plan?: Partial<RunPlan>;
  readonly over?: Partial<AllActivities>;
  /** A person pauses the run while something is held up, and it waits. */
  readonly pauses?: true;
  /** Steps whose rows are there in the end. */
  readonly steps: number;
  /** The states that were saved in all, in order. */
  readonly states: readonly string[];
  /** Books that are read, of what was broken off without a word. */
  readonly books?: readonly string[];
  /** How it ends, where that is not as `stopped` or Cancelled: the end was too near. */
  readonly outcome?: { readonly stop?: string; readonly cancel?: string };
};

const trial = (part: string): Hold => ({
  activity: 'runTrial',
  when: ({ trialId }: TrialSpec) => trialId.includes(part),
  until: 'cancelled',
});
const finishing = (activity: keyof AllActivities, when?: (order: never) => boolean): Hold => ({
  activity,
  ...(when ? { when } : {}),
  until: 'released',
});
const named = (name: string) => (order: { readonly name: string }) => order.name === name;
const ofStep = (step: number) => (order: { readonly step: number }) => order.step === step;
const unpaid: AllActivities['runTrial'] = async (spec) => {
  if (spec.trialId.includes('-s0002')) throw ApplicationFailure.nonRetryable('402', 'BillingPaused');
  return trialFor(spec);
};

/** Baselines that cost nothing. */
export const imported = {
  importedBaselines: { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') },
};
const one = { steps: 1, saveStateEvery: 9, trialConcurrency: 1 };
const two = { steps: 2, saveStateEvery: 9, trialConcurrency: 1 };
const warmup = { steps: 2, rolloutsPerTask: 1, loaded: false };
const promote = { promote: true };
const first = ['step-0001'];
const last = ['step-0002'];

/** Every place where a run can be, in the order of its life. */
export const STOP_ROWS: readonly StopRow[] = [
  { where: 'resolve', hold: finishing('resolveRun'), steps: 0, states: [] },
  { where: 'estimate', hold: finishing('estimateRun'), steps: 0, states: [] },
  { where: 'waiting for the cost', waits: 'cost', run: { yes: false }, steps: 0, states: [] },
  { where: 'preflight: models', hold: { activity: 'checkModels', until: 'cancelled' }, steps: 0, states: [], books: ['preflight'] },
  { where: 'preflight: sandbox', hold: { activity: 'checkSandbox', until: 'cancelled' }, steps: 0, states: [] },
  {
    where: 'baselines',
    hold: trial('-et-001'),
    run: { importedBaselines: { teacher: null, student: null } },
    plan: one,
    steps: 0,
    states: [],
    books: ['et-001-0'],
  },
  {
    where: 'waiting: no better teacher',
    waits: 'teacher',
    run: { importedBaselines: { teacher: null, student: null } },
    over: { compareTeacher: async () => evidence(0.05) },
    steps: 0,
    states: [],
  },
  { where: "warm-up: the teacher's play", hold: trial('-w-001'), plan: { ...one, warmup }, steps: 0, states: [], books: ['w-001-0'] },
  { where: 'warm-up: an update', hold: finishing('trainWarmup'), plan: { ...one, warmup }, steps: 0, states: ['step-0000'] },
  { where: 'opening the training', hold: finishing('openTraining'), plan: two, steps: 0, states: [] },
  { where: 'publishing', hold: finishing('saveSampler', named('step-0001')), plan: two, steps: 1, states: first },
  { where: 'step: first trials', hold: trial('-s0001-000-1'), plan: two, steps: 0, states: [], books: ['s0001-000-1'] },
  { where: 'step: trials', hold: trial('-s0002-001-0'), plan: two, steps: 1, states: first, books: ['s0002-001-0'] },
  {
    where: 'step: scoring',
    hold: { activity: 'scoreEpisode', when: ({ trialId }: { trialId: string }) => trialId.includes('-s0002-000-1'), until: 'cancelled' },
    plan: two,
    steps: 1,
    states: first,
    books: ['s0002-000-1'],
  },
  { where: 'step: update', hold: finishing('trainBatch', ofStep(2)), plan: { ...two, steps: 3 }, steps: 2, states: last },
  { where: 'step: closing', hold: finishing('closeStep', ofStep(2)), plan: { ...two, steps: 3 }, steps: 2, states: last },
  { where: 'step: saving', hold: finishing('saveState', named('step-0001')), plan: { ...two, saveStateEvery: 1 }, steps: 1, states: first },
  {
    where: 'interim evaluation',
    hold: trial('-ei0001'),
    plan: { ...two, interim: { every: 1, tasks: 2, k: 1 } },
    steps: 1,
    states: first,
    books: ['ei0001-000-0'],
  },
  { where: 'waiting for a budget', waits: 'budget', plan: { ...two, maxUsd: 0.2 }, steps: 1, states: first },
  {
    where: 'waiting for the bill',
    waits: 'billing',
    plan: two,
    over: { runTrial: unpaid },
    steps: 1,
    states: first,
    books: ['s0002-000-0'],
  },
  { where: 'paused', hold: finishing('closeStep', ofStep(1)), pauses: true, plan: two, steps: 1, states: first },
  { where: 'final: saving', hold: finishing('saveState', named('step-0002')), plan: two, steps: 2, states: last },
  { where: 'final evaluation', hold: trial('-ea-001'), plan: two, steps: 2, states: last, books: ['ea-001-0'] },
  { where: 'gate', hold: finishing('decideGate'), plan: two, run: promote, steps: 2, states: last },
  { where: 'gate, the last thing to do', hold: finishing('decideGate'), plan: two, steps: 2, states: last, outcome: { stop: 'accepted' } },
  { where: 'waiting for an approval', waits: 'promotion', plan: two, run: promote, steps: 2, states: last },
  {
    where: 'promoting',
    hold: finishing('promoteAdapter'),
    plan: two,
    run: promote,
    over: {},
    steps: 2,
    states: last,
    outcome: { stop: 'promoted', cancel: 'promoted' },
  },
  {
    where: 'writing the last state',
    hold: finishing('mirrorRun'),
    plan: two,
    steps: 2,
    states: last,
    outcome: { stop: 'accepted', cancel: 'accepted' },
  },
];
