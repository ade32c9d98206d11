import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { TrialUse } from '../../core/money/trial-limit.ts';
import { type Completion, noticeOf } from './completion.ts';
import { ConversationTree, type PlacedPrompt } from './conversation.ts';
import {
  contextOverflow,
  GatewayError,
  SamplerBusy,
  SamplerOverflow,
  SamplerUnavailable,
  SamplerUnpaid,
  samplerFailure,
  usdLimitReached,
} from './errors.ts';
import { type ModelFailure, type TrialRecord, TrialRecorder } from './record.ts';
import type { ToolDefinition } from './renderer.ts';
import { checkSample } from './sample-check.ts';
import type { SampleResult } from './token-sampler.ts';
import type { TrialOptions } from './trial-options.ts';
import { type ChatRequest, extraStopTokens, refuseUnsupported } from './wire.ts';

const KEY_BYTES = 24;

/** The server's side of a trial: checks the key, samples, records. */
export class TrialSession {
  readonly options: TrialOptions;
  readonly apiKey = `sr-${randomBytes(KEY_BYTES).toString('base64url')}`;
  readonly #key = Buffer.from(this.apiKey);
  readonly #recorder = new TrialRecorder();
  readonly #tree: ConversationTree;
  readonly #inFlight = new Set<AbortController>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #reserved = new Set<TrialUse['inFlight'][number]>();
  #ended = false;

  constructor(options: TrialOptions) {
    this.options = options;
    this.#tree = new ConversationTree(options.renderer);
  }

  /** In constant time for keys of the right length, which is no secret. */
  accepts(apiKey: string): boolean {
    const given = Buffer.from(apiKey);
    return given.length === this.#key.length && timingSafeEqual(given, this.#key);
  }

  record(): TrialRecord {
    return this.#recorder.snapshot();
  }

  /** Resolves when no call is under way: what was sampled for nobody is in the record by then. */
  async quiet(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** Aborts calls in flight; they are answered with 410 and not recorded. */
  end(): void {
    this.#ended = true;
    for (const call of this.#inFlight) call.abort(new Error('the trial has ended'));
  }

  /** @throws GatewayError ready to be sent; after one on the model's side `record().failure` is set. */
  complete(request: ChatRequest, clientGone: AbortSignal): Promise<Completion> {
    const completion = this.#complete(request, clientGone);
    const settled = completion.catch(() => {}).finally(() => this.#underWay.delete(settled));
    this.#underWay.add(settled);
    return completion;
  }

  async #complete(request: ChatRequest, clientGone: AbortSignal): Promise<Completion> {
    refuseUnsupported(request, this.options);
    this.#refuseBeyondMaxCalls();
    const call = new AbortController();
    const abort = () => call.abort(clientGone.reason);
    this.#inFlight.add(call);
    clientGone.addEventListener('abort', abort, { once: true });
    if (clientGone.aborted) abort();
    try {
      const { renderer } = this.options;
      const extraStops = await extraStopTokens(request.stop, renderer);
      const placed = await this.#tree.prompt(request.messages, request.tools);
      const roomTokens = this.#fit(placed.prompt.length, request.maxTokens);
      const maxTokens = Math.min(roomTokens, this.#affordable(placed.prompt));
      const reserved = { promptTokens: placed.prompt.length, maxTokens };
      this.#reserved.add(reserved);
      const said = await this.#sample(placed, { maxTokens, roomTokens, extraStops, signal: call.signal, tools: request.tools }).finally(
        () => this.#reserved.delete(reserved),
      );
      if (maxTokens < roomTokens && said.stop === 'length') this.#recorder.usdLimited();
      return said;
    } catch (cause) {
      throw this.#asAnswer(cause);
    } finally {
      this.#inFlight.delete(call);
      clientGone.removeEventListener('abort', abort);
    }
  }

  async #sample(
    placed: PlacedPrompt,
    {
      maxTokens,
      roomTokens,
      extraStops,
      signal,
      tools,
    }: {
      maxTokens: number;
      roomTokens: number;
      extraStops: readonly number[];
      signal: AbortSignal;
      tools: readonly ToolDefinition[];
    },
  ): Promise<Completion> {
    const { sampler, renderer, temperature } = this.options;
    const { prompt } = placed;
    const { version } = sampler; // before the call: weights that arrive during it did not sample it
    const startedMs = performance.now();
    let result: SampleResult;
    try {
      signal.throwIfAborted();
      const stopTokens = [...renderer.stopTokens, ...extraStops];
      const limits = roomTokens === maxTokens ? { maxTokens } : { maxTokens, roomTokens };
      result = await sampler.sample({ prompt, ...limits, temperature, stopTokens, signal });
    } catch (cause) {
      throw this.#samplingFailed(cause, signal);
    }
    const samplingMs = performance.now() - startedMs;
    if (signal.aborted) {
      this.#recorder.waste(prompt.length, result.tokens.length);
      throw this.#gone();
    }
    const completion = await this.#keep(placed, result, { maxTokens, extraStops, version, tools });
    await this.options.onCall?.(noticeOf(completion, samplingMs));
    return completion;
  }

  async #keep(
    placed: PlacedPrompt,
    result: SampleResult,
    {
      maxTokens,
      extraStops,
      version,
      tools,
    }: { maxTokens: number; extraStops: readonly number[]; version: string; tools: readonly ToolDefinition[] },
  ): Promise<Completion> {
    const { renderer } = this.options;
    const { prompt } = placed;
    const { sampled, logprobs, maskedTokens } = this.#check(prompt.length, result, maxTokens);
    const endsInExtraStop = extraStops.includes(sampled.at(-1) ?? -1);
    const said = await renderer.parse(endsInExtraStop ? sampled.subarray(0, -1) : sampled, { prompt, tools });
    const callIndex = this.#recorder.calls;
    const link = this.#tree.record(placed, callIndex, sampled, said);
    const { stop, promptCacheHitTokens: cachedPromptTokens } = result;
    this.#recorder.add({ callIndex, prompt, sampled, logprobs, stop, sampler: version }, link, { cachedPromptTokens, maskedTokens });
    return { callIndex, prompt, sampled, logprobs, maskedTokens, stop, cachedPromptTokens, said };
  }

  #check(promptTokens: number, result: SampleResult, maxTokens: number) {
    try {
      return checkSample(result, { maxTokens, vocabularySize: this.options.renderer.vocabulary.size });
    } catch (cause) {
      this.#recorder.waste(promptTokens, result.tokens.length);
      this.#recorder.failed('bad_result', cause);
      throw samplerFailure(cause);
    }
  }

  /** Overflow is told before anything is sampled; a prompt is never clipped, only the room for the answer is. */
  #fit(promptTokens: number, askedTokens: number | null): number {
    const { contextLimitTokens, maxTokensPerCall } = this.options;
    const roomTokens = contextLimitTokens - promptTokens;
    if (roomTokens < 1) {
      this.#recorder.overflowed();
      throw contextOverflow(promptTokens, contextLimitTokens);
    }
    return Math.min(askedTokens ?? maxTokensPerCall, maxTokensPerCall, roomTokens);
  }

  /** The most that the answer may have so that the trial stays within what it may cost. */
  #affordable(prompt: Int32Array): number {
    const { spendLimit } = this.options;
    if (spendLimit === undefined) return Number.POSITIVE_INFINITY;
    const { spans, wasted } = this.#recorder;
    const tokens = spendLimit.mostTokens({ spans, wasted, inFlight: [...this.#reserved], prompt });
    if (tokens >= 1) return tokens;
    this.#recorder.usdLimited();
    throw usdLimitReached(spendLimit.limitUsd);
  }

  #refuseBeyondMaxCalls(): void {
    const { maxCalls } = this.options;
    if (maxCalls !== undefined && this.#recorder.calls + this.#inFlight.size >= maxCalls)
      throw new GatewayError(400, 'call_limit_reached', `This trial may call the model ${maxCalls} times, and has.`);
  }

  #samplingFailed(cause: unknown, signal: AbortSignal): GatewayError {
    if (signal.aborted) return this.#gone();
    if (cause instanceof SamplerOverflow) this.#recorder.overflowed();
    else this.#recorder.failed(kindOf(cause), cause);
    return samplerFailure(cause);
  }

  /** Nobody reads this when the client has left; when the trial has ended, the agent should know. */
  #gone(): GatewayError {
    return this.#ended ? trialEnded() : new GatewayError(400, 'client_gone', 'The client closed the connection; the call was aborted.');
  }

  #asAnswer(cause: unknown): GatewayError {
    if (cause instanceof GatewayError) return cause;
    this.#recorder.failed('internal', cause);
    return new GatewayError(500, 'internal_error', "The gateway failed. The trial's record has the cause.");
  }
}

function kindOf(cause: unknown): ModelFailure['kind'] {
  if (cause instanceof SamplerBusy) return 'busy';
  if (cause instanceof SamplerUnpaid) return 'unpaid';
  return cause instanceof SamplerUnavailable ? 'unavailable' : 'failed';
}

export function trialEnded(): GatewayError {
  return new GatewayError(410, 'trial_ended', 'This trial has ended; its key is dead. Stop the agent.');
}
