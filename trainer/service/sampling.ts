import { isSameCall } from './call-identity.ts';
import { HttpFailure, UserError } from './failures.ts';
import { parseRequestId, sampleRequestId } from './ids.ts';
import type { FutureState, Outcome } from './outcome.ts';
import type { CallIdentity } from './run-journal.ts';
import type { Sampler } from './session-records.ts';
import type { SampleJob, SamplingBackend, StartedSample } from './threads/sampling-backend.ts';
import { Waiters } from './waiters.ts';

/** Results are kept so long after they are there, for polls whose answer was lost on the way. */
const KEEP_RESULTS_MS = 10 * 60_000;
const KEEP_RESULTS_AT_MOST = 20_000;
/** More calls at once are refused with 429; the protocol's clients then wait and ask again. */
const MAX_IN_FLIGHT = 4096;
/** LoRA snapshots kept merged in the sampling thread. */
const ADAPTERS_AT_MOST = 16;

/** The thread knows no call of this number. */
const NOT_STARTED = -1;

type SampleCall = { state: FutureState; readonly callId: number; readonly identity: CallIdentity };

/** Told of each call that has ended, before anybody can be told its result. */
export type OnSampled = (sampler: Sampler, seq: number, job: Omit<SampleJob, 'weights'>, outcome: Outcome) => void;

/** LoRA weights by sampler path; both throw UserError when they are gone. `check` reads nothing. */
export type SamplerWeights = { readonly check: (path: string) => void; readonly read: (path: string) => Uint8Array };

/**
 * Sampling calls by request id. Results live in memory only: after a restart a sample in flight reads as gone (410),
 * upon which clients sample again.
 */
export class Sampling {
  readonly #backend: SamplingBackend;
  readonly #weights: SamplerWeights;
  readonly #onSampled: OnSampled;
  readonly #calls = new Map<string, SampleCall>();
  readonly #waiters = new Waiters<string>();
  /** Finished request ids, oldest first, and when they finished (monotonic ms). */
  readonly #finished = new Map<string, number>();
  /** Adapters in the thread, least recently used first. */
  readonly #adapters = new Set<string>();
  #inFlight = 0;

  constructor(backend: SamplingBackend, weights: SamplerWeights, onSampled: OnSampled = () => {}) {
    this.#backend = backend;
    this.#onSampled = onSampled;
    this.#weights = weights;
  }

  /** Starts a call and returns its request id; a repeat answers the first call's, and another call under its number is refused. */
  submit(sampler: Sampler, seq: number, identity: CallIdentity, jobOf: () => Omit<SampleJob, 'weights'>): string {
    const requestId = sampleRequestId(sampler.samplerId, seq);
    const known = this.#calls.get(requestId);
    if (known !== undefined && isSameCall(known.identity, identity)) return requestId;
    if (known !== undefined) throw new HttpFailure(400, `conflict: ${requestId} was another sample; take the next seq_id for a new one`);
    const job = jobOf();
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new HttpFailure(429, `${MAX_IN_FLIGHT} samples are in flight; try again in a second`);
    const { callId, result } = this.#start(sampler, job);
    this.#inFlight += 1;
    this.#calls.set(requestId, { state: { kind: 'pending' }, callId, identity });
    const finish = (outcome: Outcome) => {
      this.#onSampled(sampler, seq, job, outcome);
      this.#finish(requestId, outcome);
    };
    result.then(
      (bytes) => finish({ kind: 'proto', bytes }),
      (error: Error) => finish({ kind: 'failed', error: error.message, category: error instanceof UserError ? 'user' : 'server' }),
    );
    return requestId;
  }

  /** `isKnownSampler` tells a call lost in a restart (gone) from one that never was (unknown). */
  future(requestId: string, isKnownSampler: (id: string) => boolean): FutureState {
    const call = this.#calls.get(requestId);
    if (call !== undefined) return call.state;
    const name = parseRequestId(requestId);
    return { kind: name?.kind === 'sample' && isKnownSampler(name.owner) ? 'gone' : 'unknown' };
  }

  async wait(requestId: string, timeoutMs: number): Promise<void> {
    if (this.#calls.get(requestId)?.state.kind === 'pending') await this.#waiters.wait(requestId, timeoutMs);
  }

  cancel(requestId: string): void {
    const call = this.#calls.get(requestId);
    if (call?.state.kind === 'pending') this.#backend.cancel(call.callId);
  }

  /** Weights that cannot be read fail the sample, not the request: clients would repeat that. Throws UserError when they are gone. */
  #start(sampler: Sampler, job: Omit<SampleJob, 'weights'>): StartedSample {
    try {
      return this.#backend.sample({ ...job, weights: this.#provideWeights(sampler) });
    } catch (error) {
      if (error instanceof UserError) throw error;
      return { callId: NOT_STARTED, result: Promise.reject(error) };
    }
  }

  #finish(requestId: string, outcome: Outcome): void {
    const call = this.#calls.get(requestId);
    this.#inFlight -= 1;
    if (call === undefined) return;
    call.state = outcome;
    this.#finished.set(requestId, performance.now());
    this.#waiters.notify(requestId);
    this.#forgetOld();
  }

  #forgetOld(): void {
    const limitMs = performance.now() - KEEP_RESULTS_MS;
    for (const [requestId, finishedMs] of this.#finished) {
      if (finishedMs >= limitMs && this.#finished.size <= KEEP_RESULTS_AT_MOST) return;
      this.#finished.delete(requestId);
      this.#calls.delete(requestId);
    }
  }

  #provideWeights(sampler: Sampler): string {
    const key = sampler.modelPath;
    if (key === null) return sampler.baseModel;
    // Weights whose time is over are gone, though the thread may still have them.
    this.#weights.check(key);
    if (!this.#adapters.delete(key)) this.#backend.addAdapter(key, sampler.baseModel, this.#weights.read(key));
    this.#adapters.add(key);
    if (this.#adapters.size > ADAPTERS_AT_MOST) {
      const [oldest] = this.#adapters;
      if (oldest !== undefined) {
        this.#adapters.delete(oldest);
        this.#backend.forgetAdapter(oldest);
      }
    }
    return key;
  }
}
