import { evaluationsAheadUsd } from '../core/estimate/evaluations-ahead.ts';
import { forecastUsd } from '../core/estimate/forecast.ts';
import type { StatePath } from '../core/ids.ts';
import type { MetricsRow } from '../core/measures/metrics-row.ts';
import { NO_USAGE, type Usage } from '../core/measures/usage.ts';
import type { TrialCosts } from '../core/money/reservations.ts';
import { head } from '../core/run/decision-book.ts';
import type { Outcome, Phase } from '../core/run/phase.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import {
  type AdapterRecord,
  type Check,
  type Estimate,
  type EvalLabel,
  type EvalResult,
  type GateVerdict,
  type GuardState,
  type Handoff,
  type MoneySoFar,
  NO_GUARD_STATE,
  type SavedWeights,
  type Spend,
  type TrainingRef,
} from '../core/run/results.ts';
import { stepOfName } from '../core/run/step-name.ts';
import type { PublishedSampler, TaskList } from '../core/run/trial.ts';
import type { WarmupProgress } from '../core/run/warm-up.ts';
import { type CheckpointLedger, NO_LEDGER } from '../core/training/checkpoint-ledger.ts';
import { type Pins, pinsOf } from '../core/training/checkpoint-pins.ts';
import { type CheckpointBook, NO_CHECKPOINTS, type ResumePoint, resumePoint } from '../core/training/checkpoints.ts';

/** Rows kept in the workflow; all of them are in `metrics.jsonl`. */
const ROWS_KEPT = 50;

/** Notices kept, the newest, and their characters: a run of many steps has many, and all go with its status. */
const NOTICES_KEPT = 100;
const NOTICE_CHARS = 1_000;

/** All that a run knows of itself: plain data, so that it can be carried into a new execution. */
export type RunFacts = {
  phase: Phase;
  phaseStartedAtMs: number;
  outcome: Outcome | null;
  pinned: PinnedRun | null;
  estimate: Estimate | null;
  checks: readonly Check[];
  evaluations: readonly EvalResult[];
  /** The newest interim evaluations, the last one last. */
  interim: readonly EvalResult[];
  /** The training tasks that interim evaluations use; null before the first. */
  interimTasks: TaskList | null;
  training: TrainingRef | null;
  /** What steps sample from. */
  sampler: PublishedSampler | null;
  /** The weights that were published last; interim evaluations publish between refreshes of the sampler. */
  published: PublishedSampler | null;
  /** The newest saved training state, by the name of its step. */
  savedState: { readonly name: string; readonly path: StatePath } | null;
  checkpoints: CheckpointBook;
  /** All that was saved, and how long it lives. */
  ledger: CheckpointLedger;
  /** Null where none is planned, or before its trajectories are there. */
  warmup: WarmupProgress | null;
  /** Steps that are finished. */
  step: number;
  rows: readonly MetricsRow[];
  rowsInAll: number;
  guard: GuardState;
  /** What finished work took. */
  usage: Usage;
  /** What work took that is begun and not finished; it is counted anew when it ends. */
  openUsage: Usage;
  /** What both cost. */
  spend: Spend;
  /** What finished work cost, in USD. */
  bookedUsd: number;
  trialCosts: TrialCosts;
  /** The weights are being changed by an update whose end is not known: until it is finished, nothing else may be asked of them. */
  updateBegun: boolean;
  verdict: GateVerdict | null;
  adapter: AdapterRecord | null;
  handoff: Handoff | null;
  weights: SavedWeights | null;
  notices: readonly string[];
  wallMs: Readonly<Record<string, number>>;
};

export function newFacts(nowMs: number): RunFacts {
  return {
    phase: 'resolve',
    phaseStartedAtMs: nowMs,
    outcome: null,
    pinned: null,
    estimate: null,
    checks: [],
    evaluations: [],
    interim: [],
    interimTasks: null,
    training: null,
    sampler: null,
    published: null,
    savedState: null,
    checkpoints: NO_CHECKPOINTS,
    ledger: NO_LEDGER,
    warmup: null,
    step: 0,
    rows: [],
    rowsInAll: 0,
    guard: NO_GUARD_STATE,
    usage: NO_USAGE,
    openUsage: NO_USAGE,
    spend: { usd: 0, blindTo: [], lines: [] },
    bookedUsd: 0,
    trialCosts: {},
    updateBegun: false,
    verdict: null,
    adapter: null,
    handoff: null,
    weights: null,
    notices: [],
    wallMs: {},
  };
}

export function addRow(facts: RunFacts, row: MetricsRow): void {
  facts.rows = [...facts.rows, row].slice(-ROWS_KEPT);
  facts.rowsInAll++;
}

export function addNotice(facts: RunFacts, notice: string): void {
  facts.notices = [...facts.notices, head(notice, NOTICE_CHARS)].slice(-NOTICES_KEPT);
}

export function evaluationOf(facts: RunFacts, label: EvalLabel): EvalResult {
  const found = facts.evaluations.find((evaluation) => evaluation.label === label);
  if (!found) throw new Error(`no ${label} evaluation yet`);
  return found;
}

const stepCosts = ({ rows }: RunFacts) => rows.map((row) => row.usd);

/** The run's money as a step that is about to start sees it. */
export function moneyOf(facts: RunFacts): MoneySoFar {
  return {
    spentUsd: facts.bookedUsd,
    stepUsd: stepCosts(facts),
    stepsAhead: (facts.pinned?.plan.steps ?? 0) - facts.step - 1,
    evaluationsAheadUsd: aheadUsd(facts),
  };
}

/** USD at the end of the run if what is left, work that is only begun included, costs what the like of it did; null before the first step. */
export function forecastOf(facts: RunFacts): number | null {
  if (facts.rows.length === 0) return null;
  return forecastUsd({
    spentUsd: facts.bookedUsd,
    stepUsd: stepCosts(facts),
    remainingSteps: (facts.pinned?.plan.steps ?? 0) - facts.step,
    remainingEvalUsd: aheadUsd(facts),
  });
}

function aheadUsd(facts: RunFacts): number {
  if (!facts.pinned) return 0;
  const { plan, train, holdout } = facts.pinned;
  return evaluationsAheadUsd({ ...plan, nTrain: train.count, nHoldout: holdout.count }, facts);
}

/**
 * Where training can go on: after the newest checkpoint, but for those that the tripwire found bad. The weights whose samples began the
 * streak are bad themselves, and so is all that was trained from them.
 */
export function resumeOf({ checkpoints, guard, rows }: Pick<RunFacts, 'checkpoints' | 'guard' | 'rows'>): ResumePoint {
  const { killStreakFrom } = guard;
  if (killStreakFrom === null) return resumePoint(checkpoints);
  const first = rows.find(({ step }) => step === killStreakFrom);
  return resumePoint(checkpoints, first ? stepOfName(first.sampler) : killStreakFrom);
}

/** Which checkpoints the run needs now, and why. */
export function pinsIn(facts: RunFacts): Pins {
  const { ledger, sampler, published, savedState, checkpoints: book, weights: final, adapter } = facts;
  const uses = { sampler, published, savedState: savedState?.path ?? null, book, resume: resumeOf(facts), final };
  return pinsOf(ledger, { ...uses, isPromoted: adapter !== null });
}
