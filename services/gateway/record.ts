import type { Span } from '../../core/tokens/span.ts';
import type { CallLink, FragmentCause } from './conversation.ts';

/** What one recorded call cost and how it ended, told to `onCall` before the agent gets its answer. */
export type CallNotice = {
  readonly callIndex: number;
  readonly promptTokens: number;
  readonly cachedPromptTokens: number;
  readonly sampledTokens: number;
  readonly maskedTokens: number;
  readonly stop: 'stop' | 'length';
  /** Wall time inside the sampler. */
  readonly samplingMs: number;
};

/**
 * The last error on the model's side (not the agent's). `afterCalls` is the number of calls recorded before it:
 * if it is below the record's `calls`, the agent got over it.
 */
export type ModelFailure = {
  readonly kind: 'busy' | 'unavailable' | 'unpaid' | 'failed' | 'bad_result' | 'internal';
  readonly message: string;
  readonly afterCalls: number;
};

/** A trial as the gateway saw it. Token counts are sums over `spans`; what was sampled for nobody is in `wasted`. */
export type TrialRecord = {
  readonly spans: readonly Span[];
  /** One per span: which earlier call its prompt continues, and why not if it does not. */
  readonly links: readonly CallLink[];
  readonly calls: number;
  /** True when a prompt did not fit into the context, so that the agent was refused. */
  readonly overflow: boolean;
  /** How many calls were recorded when a prompt last did not fit: as many as `calls` if that was the last the agent heard; null for none. */
  readonly overflowAfterCalls: number | null;
  /** True when the limit of the trial's calls refused one. */
  readonly callLimited: boolean;
  /** True when the limit of the trial's sampled tokens refused a call, or cut an answer short. */
  readonly tokenLimited: boolean;
  /** The same for the limit of its cost. */
  readonly usdLimited: boolean;
  /** True when the trial's time was up: a call was refused, or ended while it was under way. */
  readonly timeLimited: boolean;
  readonly promptTokens: number;
  readonly cachedPromptTokens: number;
  readonly sampledTokens: number;
  /** Sampled tokens whose log-probability was unusable: NaN in their span, no loss. */
  readonly maskedTokens: number;
  readonly lengthStops: number;
  /** Turns with what begins like tool calls but cannot be read; the agent saw their whole text. */
  readonly unreadableCalls: number;
  /** Control tokens in new text of prompts that a user or a tool wrote as text. */
  readonly lookAlikes: number;
  /** Calls that opened a fragment of the conversation tree, by cause. Their sum is the number of fragments. */
  readonly fragments: Readonly<Partial<Record<FragmentCause, number>>>;
  /**
   * Paid for but not recorded: the client had gone, the trial had ended, or the result was unusable. What was sampled behind a stop string
   * is among its tokens, but its call is not among `calls`.
   */
  readonly wasted: { readonly calls: number; readonly promptTokens: number; readonly sampledTokens: number };
  readonly failure: ModelFailure | null;
};

type AddedCounts = { readonly cachedPromptTokens: number; readonly maskedTokens: number; readonly unreadableCalls: boolean };

/** Collects a trial's calls in the order in which they were sampled. */
export class TrialRecorder {
  readonly #spans: Span[] = [];
  readonly #links: CallLink[] = [];
  readonly #fragments: Partial<Record<FragmentCause, number>> = {};
  #counts = {
    overflow: false,
    callLimited: false,
    tokenLimited: false,
    usdLimited: false,
    timeLimited: false,
    promptTokens: 0,
    cachedPromptTokens: 0,
    sampledTokens: 0,
    maskedTokens: 0,
    lengthStops: 0,
    unreadableCalls: 0,
    lookAlikes: 0,
  };
  #wasted = { calls: 0, promptTokens: 0, sampledTokens: 0 };
  #overflowAfterCalls: number | null = null;
  #failure: ModelFailure | null = null;

  get calls(): number {
    return this.#spans.length;
  }

  add(span: Span, link: CallLink, counts: AddedCounts): void {
    this.#spans.push(span);
    this.#links.push(link);
    if (link.cause) this.#fragments[link.cause] = (this.#fragments[link.cause] ?? 0) + 1;
    this.#counts.promptTokens += span.prompt.length;
    this.#counts.cachedPromptTokens += counts.cachedPromptTokens;
    this.#counts.sampledTokens += span.sampled.length;
    this.#counts.maskedTokens += counts.maskedTokens;
    if (span.stop === 'length') this.#counts.lengthStops++;
    if (counts.unreadableCalls) this.#counts.unreadableCalls++;
    this.#counts.lookAlikes += link.lookAlikes;
  }

  waste(promptTokens: number, sampledTokens: number): void {
    const { calls, promptTokens: prompts, sampledTokens: sampled } = this.#wasted;
    this.#wasted = { calls: calls + 1, promptTokens: prompts + promptTokens, sampledTokens: sampled + sampledTokens };
  }

  overflowed(): void {
    this.#counts.overflow = true;
    this.#overflowAfterCalls = this.#spans.length;
  }

  limited(by: 'call' | 'token' | 'usd' | 'time'): void {
    this.#counts[`${by}Limited`] = true;
  }

  /** Tokens of a recorded call that are no part of its span. */
  dropped(sampledTokens: number): void {
    this.#wasted = { ...this.#wasted, sampledTokens: this.#wasted.sampledTokens + sampledTokens };
  }

  get sampledTokens(): number {
    return this.#counts.sampledTokens;
  }

  get wasted(): TrialRecord['wasted'] {
    return this.#wasted;
  }

  get spans(): readonly Span[] {
    return this.#spans;
  }

  failed(kind: ModelFailure['kind'], cause: unknown): void {
    this.#failure = { kind, message: cause instanceof Error ? cause.message : String(cause), afterCalls: this.calls };
  }

  snapshot(): TrialRecord {
    return {
      spans: [...this.#spans],
      links: [...this.#links],
      calls: this.calls,
      ...this.#counts,
      overflowAfterCalls: this.#overflowAfterCalls,
      fragments: { ...this.#fragments },
      wasted: this.#wasted,
      failure: this.#failure,
    };
  }
}
