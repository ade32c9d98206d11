import { CallsInFlight } from './calls-in-flight.ts';
import { type Completion, noticeOf } from './completion.ts';
import { ConversationTree, type PlacedPrompt } from './conversation.ts';
import { contextOverflow, GatewayError, invalidRequest, trialEnded } from './errors.ts';
import { HistoryLimit } from './history-limit.ts';
import { type Reading, readSample } from './reading.ts';
import { type TrialRecord, TrialRecorder } from './record.ts';
import { Sampling } from './sampling.ts';
import { type Stops, stopsOf } from './stops.ts';
import { TemplateRefusal } from './template/template.ts';
import type { SampleResult } from './token-sampler.ts';
import { TextTooLong } from './tokenizer/tokenizer.ts';
import { TrialKey } from './trial-key.ts';
import { type Room, TrialLimits } from './trial-limits.ts';
import type { TrialOptions } from './trial-options.ts';
import { type ChatRequest, refuseUnsupported } from './wire.ts';

const DEFAULT_MAX_HISTORY_BYTES = 64 * 1024 ** 2;
/** The longest that a timer of Node can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The server's side of a trial: what becomes of a request, from its check to its record. */
export class TrialSession {
  readonly options: TrialOptions;
  readonly #key = new TrialKey();
  readonly #recorder = new TrialRecorder();
  readonly #limits: TrialLimits;
  readonly #sampling: Sampling;
  readonly #history: HistoryLimit;
  readonly #tree: ConversationTree;
  readonly #calls = new CallsInFlight();
  #timer: NodeJS.Timeout | null = null;
  /** Why no call is taken any more. */
  #closed: 'ended' | 'out of time' | null = null;

  constructor(options: TrialOptions) {
    this.options = options;
    this.#limits = new TrialLimits(options, this.#recorder);
    this.#sampling = new Sampling(options, this.#recorder);
    this.#history = new HistoryLimit(options.maxHistoryBytes ?? DEFAULT_MAX_HISTORY_BYTES);
    this.#tree = new ConversationTree(options.renderer, this.#history.take);
  }

  get apiKey(): string {
    return this.#key.text;
  }

  accepts(apiKey: string): boolean {
    return this.#key.accepts(apiKey);
  }

  record(): TrialRecord {
    return this.#recorder.snapshot();
  }

  /** Resolves when no call is under way: what was sampled for nobody is in the record by then. */
  quiet(): Promise<void> {
    return this.#calls.quiet();
  }

  /** Aborts calls in flight; they are answered with 410 and not recorded. */
  end(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#closed = 'ended';
    this.#calls.abort(new Error('the trial has ended'));
  }

  /** @throws GatewayError ready to be sent; after one on the model's side `record().failure` is set. */
  async complete(request: ChatRequest, clientGone: AbortSignal): Promise<Completion> {
    if (this.#closed) throw this.#refusal();
    refuseUnsupported(request, this.options);
    this.#limits.refuseBeyondCalls(this.#calls.count);
    this.#startClock();
    return this.#calls.run(clientGone, async (signal) => {
      try {
        return await this.#answer(request, signal);
      } catch (cause) {
        throw this.#asAnswer(cause, signal);
      }
    });
  }

  async #answer(request: ChatRequest, signal: AbortSignal): Promise<Completion> {
    const { renderer, temperature, onCall } = this.options;
    const { messages, tools } = request;
    const stops = await stopsOf(request.stop, renderer);
    const placed = await this.#tree.prompt(messages, tools);
    const { prompt } = placed;
    using room = this.#limits.hold(prompt, request.maxTokens);
    const startedMs = performance.now();
    const stopTokens = [...renderer.stopTokens, ...stops.ids];
    const result = await this.#sampling.sample({ prompt, ...asked(room), temperature, stopTokens, signal });
    const samplingMs = performance.now() - startedMs;
    const completion = this.#keep(placed, result, await this.#read(placed, result, { request, stops, room, signal }), signal);
    room.ended(completion.stop);
    await onCall?.(noticeOf(completion, samplingMs));
    return completion;
  }

  async #read(
    { prompt }: PlacedPrompt,
    result: SampleResult,
    { request, stops, room, signal }: { request: ChatRequest; stops: Stops; room: Room; signal: AbortSignal },
  ): Promise<Reading> {
    const { renderer } = this.options;
    try {
      const callIndex = this.#recorder.calls;
      return await readSample(result, { renderer, prompt, tools: request.tools, callIndex, stops, maxTokens: room.maxTokens });
    } catch (cause) {
      this.#recorder.waste(prompt.length, result.tokens.length);
      throw signal.aborted ? cause : this.#sampling.failed(cause);
    }
  }

  /** From here on it is in the record: nothing may come between this and hanging it in the tree. */
  #keep(placed: PlacedPrompt, result: SampleResult, reading: Reading, signal: AbortSignal): Completion {
    const { sampled, logprobs, maskedTokens, stop, said, droppedTokens } = reading;
    const { prompt, line } = placed;
    if (signal.aborted) {
      this.#recorder.waste(prompt.length, result.tokens.length);
      signal.throwIfAborted();
    }
    const callIndex = this.#recorder.calls;
    const link = this.#tree.record(placed, callIndex, sampled, said);
    const { promptCacheHitTokens: cachedPromptTokens } = result;
    const span = { callIndex, prompt, sampled, logprobs, stop, sampler: this.#sampling.version };
    this.#recorder.add(span, link, { cachedPromptTokens, maskedTokens, unreadableCalls: said.callsUnreadable ?? false });
    this.#history.noteIds(line);
    if (droppedTokens > 0) this.#recorder.dropped(droppedTokens);
    return { callIndex, prompt: line, sampled, logprobs, maskedTokens, stop, cachedPromptTokens, said };
  }

  /** A sandbox may take long to set up: the time that a trial may take begins with its first call. */
  #startClock(): void {
    const { maxWallMs } = this.options;
    if (maxWallMs === undefined || this.#timer) return;
    this.#timer = setTimeout(() => this.#timeUp(), Math.min(maxWallMs, LONGEST_TIMER_MS)).unref();
  }

  #timeUp(): void {
    this.#closed ??= 'out of time';
    if (this.#calls.count > 0) this.#recorder.limited('time');
    this.#calls.abort(new Error('the time of the trial is up'));
  }

  #refusal(): GatewayError {
    if (this.#closed === 'ended') return trialEnded();
    this.#recorder.limited('time');
    return new GatewayError('time_limit_reached', 'The time of this trial is up. Stop the agent.');
  }

  /** Nobody reads what is said to a client that has left; when the trial has ended, the agent should know. */
  #asAnswer(cause: unknown, signal: AbortSignal): GatewayError {
    if (cause instanceof GatewayError) return cause;
    if (cause instanceof TextTooLong) {
      this.#recorder.overflowed();
      return contextOverflow(cause.characters, this.options.contextLimitTokens, 'characters');
    }
    if (cause instanceof TemplateRefusal)
      return invalidRequest('messages', `messages: the model's chat template refuses them: ${cause.message}`);
    if (signal.aborted)
      return this.#closed ? this.#refusal() : new GatewayError('client_gone', 'The client closed the connection; the call was aborted.');
    this.#recorder.failed('internal', cause);
    return new GatewayError('internal_error', "The gateway failed. The trial's record has the cause.");
  }
}

const asked = ({ maxTokens, roomTokens }: Room) => (maxTokens === roomTokens ? { maxTokens } : { maxTokens, roomTokens });
