import type { BlobRef, StatePath, TrialId } from '../ids.ts';
import type { Paid } from '../measures/usage.ts';

/** What a run must know of its warm-up: supervised updates on the teacher's own episodes, before the first step. */
export type WarmupPlan = {
  /** Optimizer updates; 0 is no warm-up. */
  readonly steps: number;
  readonly rolloutsPerTask: number;
  /** True when the trajectories were read from an earlier run at the start: then none is sampled. */
  readonly loaded: boolean;
};

/** One attempt of the teacher at a training task; its tokens are in the blob store under `spans`. */
export type Trajectory = {
  readonly trialId: TrialId;
  readonly taskId: string;
  readonly passed: boolean;
  readonly executed: boolean;
  readonly sampledTokens: number;
  readonly spans: BlobRef | null;
};

/** What the teacher's attempts came to. `list` holds the trajectories as JSON. */
export type CollectedTrajectories = Paid & { readonly list: BlobRef };

/** The training sequences of a warm-up. `ref` says which episodes they are made of. */
export type WarmupSet = {
  readonly ref: BlobRef;
  readonly datums: number;
  /** What one update is expected to cost; 0 where training has no price. */
  readonly updateUsd: number;
  /** What a person should know of how the set came about. */
  readonly notice: string;
};

/** How far a warm-up is: plain data that a run carries along. */
export type WarmupProgress = {
  readonly set: WarmupSet;
  /** Updates that are applied. */
  readonly updates: number;
  readonly lossNatsPerToken: number | null;
  /** The saved state after the last update; null until then. */
  readonly statePath: StatePath | null;
};

/** One line of `warmup.jsonl`. */
export type WarmupRow = {
  /** From 1. */
  readonly update: number;
  readonly datums: number;
  readonly loss_tokens: number;
  readonly context_tokens: number;
  readonly learning_rate: number;
  /** Cross-entropy before the update, summed over loss tokens, in nats; null where the service does not say. */
  readonly loss_nats: number | null;
  readonly loss_nats_per_token: number | null;
  readonly grad_norm: number | null;
  readonly student_train_tokens: number;
  /** Null where training has no price. */
  readonly usd: number | null;
  readonly wall_ms: number;
};
