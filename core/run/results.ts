import type { CostEstimate } from '../estimate/cost.ts';
import type { Evidence } from '../gate/evidence.ts';
import type { SamplerPath, StatePath } from '../ids.ts';
import type { MetricsRow, TrainedBatch } from '../measures/metrics-row.ts';
import type { Paid, Usage } from '../measures/usage.ts';
import type { TrainingRef } from '../training/plan.ts';
import type { ModelRef } from './trial.ts';

export type { Spend } from '../measures/spend.ts';
export type { TrainingRef } from '../training/plan.ts';

/** A run's projected cost, see `estimateCost`. Null prices and costs mean unknown, never zero. */
export type Estimate = CostEstimate;

/** A named preflight check with what it measured. */
export type Check = {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly numbers: Readonly<Record<string, number>>;
  /** What a person should know though the check passed. */
  readonly warnings?: readonly string[];
};

export type TaskTally = { readonly taskId: string; readonly executed: number; readonly passed: number };

/** One evaluation of one model. `solveRate` = passed / executed, null when nothing was executed. */
export type EvalResult = Paid & {
  readonly label: EvalLabel;
  /** Imported ones were measured, and paid for, by an earlier run. */
  readonly source: 'measured' | 'imported';
  readonly model: ModelRef;
  readonly trials: number;
  readonly executed: number;
  readonly passed: number;
  readonly infraFailed: number;
  readonly solveRate: number | null;
  /** Tasks with an executed trial; none where an imported report does not say. */
  readonly perTask: readonly TaskTally[];
  /** What 95 % of its trials cost at most, in USD; null where it paid for none. */
  readonly trialUsd: number | null;
  readonly wallMs: number;
};
/** Evaluations on the held-out tasks, which the gate reads. */
export type HoldoutLabel = 'teacher' | 'student-before' | 'student-after';
/** `interim-NNNN`: of the weights after a step, on training tasks. It decides nothing. */
export type InterimLabel = `interim-${string}`;
export type EvalLabel = HoldoutLabel | InterimLabel;

/** What the optimizer did with one batch. */
export type TrainResult = Usage & {
  /** Where training stands after it. */
  readonly training: TrainingRef;
  /** What a person should know, e.g. that the model had to be rebuilt. */
  readonly notices: readonly string[];
  readonly trained: TrainedBatch;
  readonly wallMs: number;
};

/** Entropy (nats per token) and length (sampled tokens per episode) of one batch. */
export type Health = { readonly step: number; readonly entropyNatsPerToken: number; readonly sampledTokensPerEpisode: number };

/** What the guards remember from step to step. */
export type GuardState = {
  readonly baseline: Health | null;
  readonly killStreak: number;
  /** The step that began the streak of kills: what was saved from it on is no place to go on from. Null when there is none. */
  readonly killStreakFrom: number | null;
  readonly emptyStreak: number;
};
export const NO_GUARD_STATE: GuardState = { baseline: null, killStreak: 0, killStreakFrom: null, emptyStreak: 0 };

/** What a step must know of the run's money to tell its share of it. */
export type MoneySoFar = {
  /** USD that the run had cost before the step. */
  readonly spentUsd: number;
  /** USD of each earlier step, as far as they are remembered. */
  readonly stepUsd: readonly number[];
  /** Steps to come after this one. */
  readonly stepsAhead: number;
  /** USD of what is to come beside steps. */
  readonly evaluationsAheadUsd: number;
};

/** A finished step: its row, and what the guards decided from it. */
export type StepResult = Usage & {
  readonly row: MetricsRow;
  /** Where training stands after it. */
  readonly training: TrainingRef;
  readonly guard: GuardState;
  /** What 95 % of its trials cost at most, in USD, with their scores and their share of the training; null where none was paid for. */
  readonly trialUsd: number | null;
  /** Why the tripwire ends the run with this step; null when it does not. */
  readonly kill: string | null;
  /** True when too many steps in a row trained nothing. */
  readonly starved: boolean;
};

export type GateVerdict = {
  readonly accepted: boolean;
  readonly reasons: readonly string[];
  /** The rate the student had to reach. */
  readonly threshold: number | null;
  readonly teacher: number | null;
  readonly before: number | null;
  readonly after: number | null;
  /** after − before over task means. */
  readonly improvement: Evidence | null;
  /** after − min_teacher_fraction · teacher, as information. */
  readonly overThreshold: Evidence | null;
  readonly protocolHash: string;
  /** Gates this protocol has seen before this one. */
  readonly earlierGates: number;
};

/** The table that points an agent at trained weights, in the run's folder: for an accepted gate, and for manual use of a rejected one. */
export type Handoff = { readonly path: string; readonly toml: string };

/** The adapter version that an accepted gate left on disk. */
export type AdapterRecord = { readonly name: string; readonly version: number; readonly path: string };

export type SavedWeights = { readonly samplerPath: SamplerPath; readonly statePath: StatePath };
