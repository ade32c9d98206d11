import type { BlobRef, SamplerPath, TrialId } from '../ids.ts';
import type { Paid } from '../measures/usage.ts';

/** Which weights a trial or a score uses. `version` is written into every span: `step-NNNN`, or the base model's name. */
export type ModelRef =
  | { readonly kind: 'base'; readonly model: string; readonly version: string }
  | { readonly kind: 'sampler'; readonly model: string; readonly path: SamplerPath; readonly version: string };

/** Weights of the student that can be sampled: those after a step. */
export type PublishedSampler = Extract<ModelRef, { readonly kind: 'sampler' }>;

/** The commit of a git repository that a task is fetched from, where it is not below the project root: always the same content. */
export type TaskSource = { readonly url: string; readonly commit: string };

/** A task as the run pinned it. `path` counts from the project root, or from the top of its repository. The digest is over its content. */
export type PinnedTask = { readonly id: string; readonly path: string; readonly digest: string; readonly source?: TaskSource };

/** Tasks as they travel: a list of them in the blob store, and how many they are. */
export type TaskList = { readonly ref: BlobRef; readonly count: number };

/** One attempt at one task, small enough for history. */
export type TrialSpec = {
  readonly run: BlobRef;
  readonly trialId: TrialId;
  readonly task: PinnedTask;
  readonly who: 'student' | 'teacher';
  readonly model: ModelRef;
  readonly maxTurns: number;
  /** True for a trial that is scored and trained on; the others are only counted, or kept as trajectories. */
  readonly trains: boolean;
};

/** Whether a trial that says nothing about the model is worth another try: as often as the run's retries allow, or once at most. */
export type TrialRetry = 'never' | 'once' | 'again';

/**
 * Who broke a trial: the `agent`, its `budget` of time or tokens, the `grader` of its task, the `sandbox`, the `model` it could not ask, or `us`
 * (Stillroom, or harbor as it is installed).
 */
export type Fault = 'agent' | 'budget' | 'grader' | 'sandbox' | 'model' | 'us';

/** What a trial left: ids and counts; its tokens are in the blob store under `spans`. */
export type TrialSummary = Paid & {
  readonly trialId: TrialId;
  readonly taskId: string;
  readonly spans: BlobRef | null;
  /** What it left in its folder, packed; null where `harbor.keep_files` does not keep it, or nothing was there. */
  readonly files: BlobRef | null;
  readonly reward: number | null;
  /** False when the trial says nothing about the model: the infrastructure or the grader failed. */
  readonly executed: boolean;
  readonly passed: boolean;
  readonly retry: TrialRetry;
  /** Share of its resolved tests that passed; null without a test report. */
  readonly gradedScore: number | null;
  readonly exceptionType: string | null;
  readonly exceptionMessage: string | null;
  /** Null where nothing broke. */
  readonly fault: Fault | null;
  /** Why the agent ended; a limit of the trial that was reached goes before the agent's own word. */
  readonly stopReason: string | null;
  readonly calls: number;
  /** Calls that sampled as many tokens as they were allowed: their answers are cut off. */
  readonly truncatedCalls: number;
  readonly sampledTokens: number;
  /** Sum of −logprob over sampled tokens with a usable log-probability, in nats, and how many those are. */
  readonly negLogprobNats: number;
  readonly scoredTokens: number;
  readonly maskedTokens: number;
  readonly overflow: boolean;
  readonly lengthStops: number;
  /** Calls, after the first, whose prompt did not simply continue an earlier call, by cause. */
  readonly fragmentCauses: Readonly<Record<string, number>>;
  /** Turns with what begins like tool calls but cannot be read. */
  readonly unreadableCalls: number;
  /** Control tokens in prompts that a user or a tool wrote as text. */
  readonly lookAlikes: number;
  /** Sampled tokens that an attempt which died had bought, and that were answered from its records. */
  readonly replayedTokens: number;
  /** Sampled tokens that an attempt which died had bought in vain: its calls were not made again. */
  readonly reboughtTokens: number;
  readonly wallMs: number;
};

/** The trial's datums with their teacher rows, stored under `scored`; null when it has nothing to train on. */
export type EpisodeScore = Paid & {
  /** What training on it will cost at most, in USD. */
  readonly trainUsd: number;
  readonly trialId: TrialId;
  readonly scored: BlobRef | null;
  /** The teacher's likeliest tokens at its loss positions; null unless the loss needs them. */
  readonly candidates: BlobRef | null;
  readonly datums: number;
  readonly fragments: number;
  readonly lossTokens: number;
  readonly overflowDropped: boolean;
  readonly overlongDropped: boolean;
};
