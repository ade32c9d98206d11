import type { TrialId } from '../../core/ids.ts';
import type { TrialUse } from '../../core/money/trial-limit.ts';
import type { CallNotice } from './record.ts';
import type { ChatRenderer } from './renderer.ts';
import type { TokenSampler } from './token-sampler.ts';

/** What a trial may cost. `mostTokens` says how many tokens the next call may sample at most; below 1 it may not be made. */
export type SpendLimit = { readonly limitUsd: number; readonly mostTokens: (use: TrialUse) => number };

/** One attempt's access to the model. Limits in tokens; `temperature` is the run's, and the only one that is sampled. */
export type TrialOptions = {
  readonly trialId: TrialId;
  /** Written into answers; the request's own `model` is not compared, since agents send aliases. */
  readonly modelName: string;
  readonly sampler: TokenSampler;
  readonly renderer: ChatRenderer;
  readonly contextLimitTokens: number;
  readonly maxTokensPerCall: number;
  readonly temperature: number;
  /** Calls beyond this are refused. Absent: no limit. */
  readonly maxCalls?: number;
  /** The most tokens that the trial may sample in all its calls, wasted ones included. Absent: no limit. */
  readonly maxSampledTokens?: number;
  /** From the trial's first call on; then calls under way are ended and new ones refused. Absent: no limit. */
  readonly maxWallMs?: number;
  /** The most memory that its conversations may take, about. Default 64 MiB. */
  readonly maxHistoryBytes?: number;
  /** Absent: no limit. */
  readonly spendLimit?: SpendLimit;
  /** Told of each call after it is recorded and before it is answered; if it fails, so does the call (500). */
  readonly onCall?: (call: CallNotice) => void | Promise<void>;
};
