import type { BlobRef } from '../ids.ts';
import type { TrialReserves } from '../money/reservations.ts';
import type { KeepRules } from '../training/checkpoint-lives.ts';
import type { PinnedAgent } from './agent-program.ts';
import type { Branch } from './branch.ts';
import type { EvalResult } from './results.ts';
import type { ModelRef, TaskList } from './trial.ts';
import type { WarmupPlan } from './warm-up.ts';

export type { PinnedAgent } from './agent-program.ts';

/** What the workflow itself needs of the config: counts, times and caps, compiled once when the run is resolved. */
export type RunPlan = {
  /** The student before any training. */
  readonly student: ModelRef;
  /** The teacher as it is sampled: its base model or a checkpoint of it. */
  readonly teacher: ModelRef;
  readonly steps: number;
  readonly tasksPerBatch: number;
  readonly groupSize: number;
  readonly trialConcurrency: number;
  readonly samplerRefreshEvery: number;
  readonly saveStateEvery: number;
  readonly infraRetries: number;
  /** Failures in a row for one cause after which a batch starts no more trials; 0 or absent: never. */
  readonly sameCauseFailures?: number;
  readonly maxTurns: number;
  readonly rolloutMaxTurns: number;
  readonly episodeTimeoutMs: number;
  readonly gateK: number;
  /** Interim evaluations, every so many steps; 0 is none. */
  readonly interim: { readonly every: number; readonly tasks: number; readonly k: number };
  /** A teacher that is not imported is measured after training. */
  readonly deferBaselines: boolean;
  readonly warmup: WarmupPlan;
  readonly maxUsd: number | null;
  /** What to set aside for a trial. */
  readonly reserves: TrialReserves;
  readonly checkpoints: KeepRules;
  /** Task queues of the roles that are not the run's own. */
  readonly queues: { readonly rollouts: string; readonly training: string };
};

/** The record of what a run is: made by its first activity, kept in history. A file changed later cannot change a running run. */
export type PinnedRun = {
  readonly runId: string;
  readonly runDir: string;
  /** Eight hex digits that start every trial id of this run. */
  readonly trialPrefix: string;
  readonly agent: PinnedAgent;
  readonly backend: 'local' | 'e2b';
  readonly promote: boolean;
  readonly yes: boolean;
  readonly plan: RunPlan;
  readonly train: TaskList;
  readonly holdout: TaskList;
  /** What the student starts from; null for a fresh adapter on the base model. */
  readonly branch: Branch | null;
  /** Evaluations that earlier runs measured and that stand for this run's; null where it measures itself. */
  readonly importedBaselines: { readonly teacher: EvalResult | null; readonly student: EvalResult | null };
  /** sha256 of what makes two evaluations comparable: task digests, budgets, sampling, agent, attempts. */
  readonly protocolHash: string;
  /** What is allowed but worth knowing before it costs something. */
  readonly warnings: readonly string[];
  /** sha256 by input file, for the record. */
  readonly fileHashes: Readonly<Record<string, string>>;
  /** The same record with the whole config and job template, where activities read it. */
  readonly ref: BlobRef;
};
