import { z } from 'zod';
import { callFate, ofResubmittedCall, ofTakenCall, ofUnsentCall } from '../call-fate.ts';
import { ResubmitSample, SessionLost } from '../errors.ts';
import { promiseSchema } from '../futures/answers.ts';
import { sampleOf } from '../futures/decode-result.ts';
import { type Future, retrieve, submit } from '../futures/futures.ts';
import { unlessAborted } from '../http/abort.ts';
import type { Caller } from '../http/caller.ts';
import type { HttpAnswer } from '../http/http.ts';
import { parseJson } from '../http/parse-answer.ts';
import { backoffMs } from '../http/retry.ts';
import type { SamplingFlags } from '../session/service-flags.ts';
import { CompletionFeed } from './completion-feed.ts';
import { type AsampleOptions, asampleBody, promptBytes } from './sample-body.ts';
import type { DispatchedSample } from './sample-result.ts';
import { UnpaidSamples } from './unpaid-samples.ts';

type Session = {
  readonly id: string;
  /** Null: every sample is polled for by itself. */
  readonly feed: CompletionFeed | null;
  nextSeqId: number;
  /** Numbers whose every submission the service refused: no sample has them. */
  readonly unusedSeqIds: number[];
};

/** A sample that is lost this often in a row is not lost by chance. */
const LONGEST_LOSING_STREAK = 8;
const CANCEL_TIMEOUT_MS = 30_000;
const SEQ_IDS_OF_A_CLONE = 1_000_000_000;
/** Above it a seq_id is no exact number any more. */
const HIGHEST_CLONE = 9_000_000;

/** What failed came before the sample was sent. */
const unsent = (error: unknown): never => {
  throw ofUnsentCall(error);
};

/** For a sampler that cannot know which clones there are. */
export function randomClone(): number {
  return 1 + Math.floor(Math.random() * HIGHEST_CLONE);
}

/** Sends the samples of one sampling session. A lost sample is submitted again, a lost session opened again, without the caller noticing. */
export class SampleDispatch {
  readonly #caller: Caller;
  readonly #open: () => Promise<string>;
  readonly #flags: SamplingFlags;
  readonly #unpaid = new UnpaidSamples();
  #session: Promise<Session>;

  /**
   * `open` opens another sampling session on the same weights and returns its id. `clone`: 0, or a number of its own for one that
   * joins a sampling session whose numbers another sampler may have used.
   */
  constructor(caller: Caller, flags: SamplingFlags, sessionId: string, open: () => Promise<string>, clone = 0) {
    this.#caller = caller;
    this.#flags = flags;
    this.#open = open;
    this.#session = Promise.resolve(this.#newSession(sessionId, clone));
  }

  /**
   * Every submission has its own seq_id: a repeated one would bring the lost result back. `standing` is the request id of the same sample
   * where the service has taken it before: nothing is submitted unless it lost that one.
   */
  async run(options: AsampleOptions, signal: AbortSignal | undefined, standing?: string): Promise<DispatchedSample> {
    let resubmissions = 0;
    // Samples that one poll serves are not counted.
    const release = this.#usesFeed ? () => {} : await this.#caller.backPressure.sample(this.#caller.untilClosed(signal));
    try {
      for (let losses = 0; ; losses++) {
        const opened = this.#session;
        const session = await unlessAborted(opened, signal);
        try {
          const known = losses === 0 ? this.#taken(session, options, standing) : null;
          const sample = await this.#attempt(session, options, signal, known);
          return resubmissions === 0 ? sample : { ...sample, resubmissions };
        } catch (error) {
          const isLost = error instanceof SessionLost || (error instanceof ResubmitSample && this.#mayResubmit(options));
          if (!isLost || losses >= LONGEST_LOSING_STREAK) throw error;
          if (callFate(error) !== 'refused') resubmissions++;
          if (error instanceof SessionLost) await unlessAborted(this.#reopen(opened), signal).catch(unsent);
        }
        await this.#caller.sleep(backoffMs(losses), signal);
      }
    } catch (error) {
      throw resubmissions === 0 ? error : ofResubmittedCall(error);
    } finally {
      release();
    }
  }

  /** A service that wants no samples again may still be asked for scores again: they cost one token. */
  #mayResubmit({ includePromptLogprobs = false, maxTokens }: AsampleOptions): boolean {
    return this.#flags.mayResubmit || (includePromptLogprobs && maxTokens === 1);
  }

  /** The same sample, where the service has taken it before and kept it back. */
  #taken(session: Session, options: AsampleOptions, standing: string | undefined): Future | null {
    const known = this.#unpaid.take(session.id, options, standing);
    return known ?? (standing === undefined ? null : { requestId: standing, type: 'Sample', subject: 'sample' });
  }

  async #attempt(
    session: Session,
    options: AsampleOptions,
    signal: AbortSignal | undefined,
    known: Future | null,
  ): Promise<DispatchedSample> {
    // It may be of another sampling session, of whose samples this one's feed says nothing.
    if (known) return this.#completed({ ...session, feed: null }, known, options, signal);
    const expectationEnds = session.feed?.expectOne();
    const future = await this.#submit(session, options, signal).catch((error) => {
      expectationEnds?.();
      throw error;
    });
    return this.#completed(session, future, options, signal, expectationEnds);
  }

  /** Waits for a sample that the service has taken. Where it wants payment first, the sample is kept for the next request that is the same. */
  async #completed(
    session: Session,
    future: Future,
    options: AsampleOptions,
    signal: AbortSignal | undefined,
    expectationEnds?: () => void,
  ): Promise<DispatchedSample> {
    try {
      const limits = { stalledMs: this.#stalledMs() };
      const completing = session.feed?.completion(future.requestId, signal);
      expectationEnds?.();
      const completion = await completing;
      const result = await retrieve(this.#caller, future, signal, { sizeBytes: completion?.sizeBytes ?? null, limits });
      session.feed?.acknowledge(future.requestId);
      return { ...sampleOf(result, future, this.#caller), sequenceIds: future.sampleSequenceIds ?? [], requestId: future.requestId };
    } catch (error) {
      if (signal?.aborted && this.#flags.mayCancel()) this.#cancel(future.requestId);
      const failure = ofTakenCall(error);
      if (callFate(failure) === 'standing') this.#unpaid.keep(session.id, options, future);
      throw failure;
    }
  }

  async #submit(session: Session, options: AsampleOptions, signal: AbortSignal | undefined): Promise<Future> {
    const seqId = session.unusedSeqIds.shift() ?? session.nextSeqId++;
    const common = { method: 'POST', path: 'asample', phase: 'sample', subject: 'sampling session', signal } as const;
    const call = {
      ...common,
      body: asampleBody(session.id, seqId, options),
      headers: { 'x-tinker-sampling-backpressure': '1' },
      reserves: { bytes: promptBytes(options.prompt), of: 'sample' },
      onLateAnswer: this.#flags.mayCancel() ? (answer: HttpAnswer) => this.#cancelLate(answer) : undefined,
    } as const;
    try {
      return await submit(this.#caller, call, 'Sample', 'sample');
    } catch (error) {
      if (callFate(error) === 'unpaid') session.unusedSeqIds.push(seqId);
      throw error;
    }
  }

  get #usesFeed(): boolean {
    return this.#flags.useFeed && this.#caller.hasFeed !== false;
  }

  #stalledMs(): number {
    return this.#flags.mayStall ? this.#caller.connection.stalledMs : Number.POSITIVE_INFINITY;
  }

  #newSession(id: string, clone = 0): Session {
    const feed = this.#usesFeed ? new CompletionFeed(this.#caller, id, this.#stalledMs(), clone) : null;
    return { id, feed, nextSeqId: clone * SEQ_IDS_OF_A_CLONE, unusedSeqIds: [] };
  }

  /** Only the first of the calls that met the lost session opens a new one, the others join it. @throws SessionLost when the session above it is gone too */
  async #reopen(lost: Promise<Session>): Promise<void> {
    if (this.#session === lost) {
      const opening = this.#open().then((id) => this.#newSession(id));
      this.#session = opening;
      // A failed opening must not stick: the next call tries again from the lost session.
      opening.catch(() => {
        if (this.#session === opening) this.#session = lost;
      });
    }
    await this.#session;
  }

  /** The sample was abandoned before the service had answered its submission. */
  #cancelLate(answer: HttpAnswer): void {
    const promise = promiseSchema.safeParse(parseJson(answer, z.unknown(), this.#caller, 'asample'));
    if (promise.success) this.#cancel(promise.data.request_id);
  }

  /** Spares the service the work; nothing depends on it. */
  #cancel(requestId: string): void {
    const body = JSON.stringify({ request_id: requestId });
    const call = { method: 'POST', path: 'cancel_future', body, timeoutMs: CANCEL_TIMEOUT_MS, phase: 'once', subject: 'other' } as const;
    this.#caller.send(call).catch(() => {});
  }
}
