import type { Evidence } from '../gate/evidence.ts';
import type { SamplerPath, StatePath } from '../ids.ts';
import type { MeterTokens } from '../measures/meters.ts';
import type { ModelRef } from './trial.ts';

/** One line of the estimate table. Null price or cost means unknown, never zero. */
export type EstimateLine = {
  readonly meter: string;
  readonly tokens: number;
  readonly pricePerMtokUsd: number | null;
  readonly usd: number | null;
};
export type Estimate = {
  readonly lines: readonly EstimateLine[];
  readonly pricedUsd: number;
  readonly unpricedMeters: readonly string[];
  readonly fullyPriced: boolean;
  readonly trainEpisodes: number;
  readonly evalEpisodes: number;
};

/** Money so far. `blindTo` names the meters that have no price: the cap cannot see them. */
export type Spend = { readonly usd: number; readonly blindTo: readonly string[] };

/** A named preflight check with what it measured. */
export type Check = {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly numbers: Readonly<Record<string, number>>;
};

export type TaskTally = { readonly taskId: string; readonly executed: number; readonly passed: number };

/** One evaluation of one model on the held-out tasks. `solveRate` = passed / executed, null when nothing was executed. */
export type EvalResult = {
  readonly label: EvalLabel;
  readonly model: ModelRef;
  readonly trials: number;
  readonly executed: number;
  readonly passed: number;
  readonly infraFailed: number;
  readonly solveRate: number | null;
  readonly perTask: readonly TaskTally[];
  readonly meters: MeterTokens;
  /** Cost of the priced meters. */
  readonly usd: number;
  readonly wallMs: number;
};
export type EvalLabel = 'teacher' | 'student-before' | 'student-after';

/** Where the student's training lives on the service, and the sequence number its next call carries. */
export type TrainingRef = { readonly sessionId: string; readonly modelId: string; readonly nextSeqId: number };

/** What the optimizer did with one batch. */
export type TrainResult = {
  readonly nextSeqId: number;
  readonly updates: number;
  readonly datums: number;
  readonly lossTokens: number;
  readonly contextTokens: number;
  readonly loss: number | null;
  readonly gradNorm: number | null;
  readonly reverseKlNatsPerToken: number | null;
  readonly advantageMean: number | null;
  readonly advantageStd: number | null;
  readonly clippedTokens: number;
  readonly mismatchDrops: number;
  readonly meters: MeterTokens;
  readonly wallMs: number;
};

/** Entropy (nats per token) and length (sampled tokens per episode) of one batch. */
export type Health = { readonly step: number; readonly entropyNatsPerToken: number; readonly sampledTokensPerEpisode: number };

/** What the guards remember from step to step. */
export type GuardState = { readonly baseline: Health | null; readonly killStreak: number; readonly emptyStreak: number };
export const NO_GUARD_STATE: GuardState = { baseline: null, killStreak: 0, emptyStreak: 0 };

/** One row per step, as in `metrics.jsonl`. */
export type StepRow = {
  readonly step: number;
  readonly sampler: string;
  readonly trials: number;
  readonly executedTrials: number;
  readonly passedTrials: number;
  readonly infraFailedTrials: number;
  readonly solveRate: number | null;
  readonly reverseKlNatsPerToken: number | null;
  readonly entropyNatsPerToken: number | null;
  readonly sampledTokensPerEpisode: number | null;
  readonly datums: number;
  readonly fragments: number;
  readonly lossTokens: number;
  readonly updates: number;
  readonly loss: number | null;
  readonly gradNorm: number | null;
  readonly advantageMean: number | null;
  readonly advantageStd: number | null;
  readonly clippedTokens: number;
  readonly maskedTokens: number;
  readonly overflowTrials: number;
  readonly entropyRatio: number | null;
  readonly lengthRatio: number | null;
  readonly warnings: readonly string[];
  readonly meters: MeterTokens;
  readonly usd: number;
  readonly wallMs: number;
  readonly trainMs: number;
};

/** A finished step: its row, and what the guards decided from it. */
export type StepResult = {
  readonly row: StepRow;
  readonly nextSeqId: number;
  readonly guard: GuardState;
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
