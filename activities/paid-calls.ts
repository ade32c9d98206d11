import { createHash, randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { addMeters, type MeterTokens } from '../core/measures/meters.ts';
import type { BookName } from '../core/recordings/book-name.ts';
import { answeredMeters, lostMeters } from '../core/recordings/books.ts';
import { type CallAnswer, type CallIntent, decodeEntry, type Entry, encodeEntry } from '../core/recordings/entry.ts';
import { callsIn, isAnswered, type PaidCall, standingAs } from '../core/recordings/paid-call.ts';
import { Replay } from '../core/recordings/replay.ts';
import { FencedLog, StaleAttempt } from '../services/blobs/fenced-log.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { placeOf } from '../services/blobs/run-keys.ts';
import { callFate, TinkerError } from '../services/tinker/index.ts';
import { thisAttempt } from './attempt.ts';

/** Whose attempt keeps a book: attempts of one activity execution are numbered, executions of the same work are not. */
type Keeper = { readonly execution: string; readonly attempt: number };

export type CallOrder = Omit<CallIntent, 'index' | 'answered'>;

/** Makes a call under this number; or, where the service has taken it before, waits for it by the name it has there. */
export type Ask = (index: number, standing: string | null) => Promise<CallAnswer>;

/** The prefix of everything that is recorded of a run's paid calls. */
export const callsPrefix = (runId: string) => `${placeOf(runId)}calls/`;

export const bookPrefix = (runId: string, { of, kind }: BookName) => `${callsPrefix(runId)}${of}/${kind}/`;

/** The book of one piece of work, taken over by this attempt. @throws StaleAttempt */
export const openBook = (objects: ObjectStore, runId: string, book: BookName): Promise<PaidCalls> =>
  PaidCalls.open(new FencedLog(objects, bookPrefix(runId, book)));

function thisKeeper(): Keeper {
  const { executionId, activityId, attempt } = thisAttempt();
  return { execution: `${executionId}/${activityId}`, attempt };
}

/** Runs an attempt's work; when the work was taken over meanwhile, it ends as that, and not as a failure of the model. */
export async function unforked<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof StaleAttempt ? ApplicationFailure.retryable(error.message, error.name) : error;
  }
}

/** What a call's answer depends on, as a name. */
export function callKey(tokens: Int32Array, settings: object): string {
  const hash = createHash('sha256').update(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength));
  return hash.update(JSON.stringify(settings)).digest('hex');
}

/**
 * The write-ahead book of paid calls of one piece of work, as its current attempt keeps it. A call is entered before it is sent, and its
 * answer before anybody sees it; calls that an earlier attempt made in the same way are answered from the book. An attempt whose work was
 * taken over can enter nothing more, so that there is one answer to each call.
 */
export class PaidCalls {
  /** 1 for the first attempt. */
  readonly epoch: number;
  private readonly log: FencedLog;
  private readonly entries: Entry[];
  private readonly ownFrom: number;
  /** Places of the calls that this attempt has had answered. */
  private readonly own = new Set<number>();
  private readonly replay: Replay;
  /** Places of the calls whose answers this attempt has been given. */
  private readonly handed = new Set<number>();
  private readonly inFlight = new Set<Promise<unknown>>();
  /** Places of the calls that are on their way. */
  private readonly open = new Set<number>();

  private constructor(log: FencedLog, earlier: readonly Entry[], own: Entry) {
    this.log = log;
    this.entries = [...earlier, own];
    this.ownFrom = earlier.length;
    this.epoch = this.entries.filter(({ type }) => type === 'attempt').length;
    this.replay = new Replay(callsIn(earlier));
  }

  /** Takes the book over. @throws StaleAttempt when a later attempt of the same activity has it. */
  static async open(log: FencedLog, { execution, attempt }: Keeper = thisKeeper()): Promise<PaidCalls> {
    const own = { type: 'attempt', execution, attempt, nonce: randomUUID() } as const;
    const earlier = await log.open((entries) => {
      const owner = entries.map(decodeEntry).findLast((entry) => entry.type === 'attempt');
      if (owner?.execution === execution && owner.attempt > attempt) throw new StaleAttempt('this work');
      return encodeEntry(own);
    });
    return new PaidCalls(log, earlier.map(decodeEntry), own);
  }

  /** Set once a newer attempt has taken over. */
  get stale(): StaleAttempt | null {
    return this.log.refusal;
  }

  /** What an earlier attempt ended with; `null` when none did. */
  get finished(): { readonly result: unknown } | null {
    return this.entries.find((entry) => entry.type === 'finished') ?? null;
  }

  /** Attempts that ended because the model answered wrongly. */
  get failures(): number {
    return this.entries.filter((entry) => entry.type === 'failing' && entry.cause === undefined).length;
  }

  /** Attempts that ended because the harbor runner which they were in died. */
  get runnerDeaths(): number {
    return this.entries.filter((entry) => entry.type === 'failing' && entry.cause === 'runner').length;
  }

  /** All calls, those of earlier attempts included. */
  get calls(): readonly PaidCall[] {
    return callsIn(this.entries);
  }

  /** Answers of earlier attempts are still to be had. */
  get isReplaying(): boolean {
    return this.replay.hasMore;
  }

  /** What was paid for beside the answers that this attempt has been given: those that nobody was given, and lost calls. */
  get beside(): MeterTokens {
    const ended = this.calls.filter(({ place }) => !this.open.has(place));
    const unused = ended.filter(isAnswered).filter((call) => !this.wasHanded(call));
    return addMeters(answeredMeters(unused), lostMeters(ended));
  }

  wasHanded(call: PaidCall): boolean {
    return this.handed.has(call.place);
  }

  /** True for a call of which an earlier attempt had the answer. */
  isInherited(call: PaidCall): boolean {
    return call.place < this.ownFrom && !this.own.has(call.place);
  }

  /**
   * Answers one call: from the book, or by `ask`, which gets the call's number and fails with the service's own errors.
   * @throws StaleAttempt, and what `ask` throws
   */
  async call(order: CallOrder, ask: Ask): Promise<CallAnswer> {
    const { recorded, standing, ...turn } = this.replay.take(order.key);
    if (recorded) {
      this.handed.add(recorded.place);
      this.replay.settle();
      return recorded.outcome;
    }
    const asking = this.ask({ ...order, ...turn }, standing, ask);
    const settled = asking.catch(() => {});
    this.inFlight.add(settled);
    void settled.finally(() => this.inFlight.delete(settled));
    return asking;
  }

  /** Resolves when no call is on its way. */
  async quiet(): Promise<void> {
    while (this.inFlight.size > 0) await Promise.all(this.inFlight);
  }

  async noteFailing(): Promise<void> {
    await this.enter({ type: 'failing' });
  }

  async noteRunnerDeath(): Promise<void> {
    await this.enter({ type: 'failing', cause: 'runner' });
  }

  /** Ends the work: later attempts get this result and do nothing. @throws StaleAttempt */
  async finish<T>(result: T): Promise<T> {
    await this.enter({ type: 'finished', result });
    return result;
  }

  private async ask(intent: CallIntent, standing: PaidCall | null, ask: Ask): Promise<CallAnswer> {
    const of = standing?.place ?? (await this.enter({ type: 'intent', ...intent }));
    this.open.add(of);
    try {
      const answer = await ask(intent.index, standing && standingAs(standing));
      await this.enter({ type: 'answer', of, ...answer });
      this.own.add(of);
      this.handed.add(of);
      this.replay.settle();
      return answer;
    } catch (error) {
      if (!standing) await this.noteFate(of, error);
      throw error;
    } finally {
      this.open.delete(of);
    }
  }

  /** Of any other failure nobody knows whether the service did the work. */
  private async noteFate(of: number, error: unknown): Promise<void> {
    const fate = callFate(error);
    if (fate === 'unsent' || fate === 'refused' || fate === 'unpaid') await this.enter({ type: 'refused', of });
    const requestId = error instanceof TinkerError ? error.requestId : null;
    if (fate === 'standing' && requestId !== null) await this.enter({ type: 'standing', of, requestId });
  }

  private async enter(entry: Entry): Promise<number> {
    const place = await this.log.append(encodeEntry(entry));
    this.entries[place] = entry;
    return place;
  }
}
