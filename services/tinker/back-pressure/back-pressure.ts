import type { Clock } from '../http/clock.ts';
import { type Release, Semaphore } from './semaphore.ts';

export type BackPressureLimits = {
  /** Of prompts being submitted, by their estimate. */
  readonly sampleDispatchBytes: number;
  /** Of forward and forward_backward bodies being submitted. */
  readonly trainingDispatchBytes: number;
  /** Of large results being fetched. */
  readonly responseBytes: number;
  /** Samples from their submission to their result, where each is polled for by itself. */
  readonly concurrentSamples: number;
};

export const DEFAULT_LIMITS: BackPressureLimits = {
  sampleDispatchBytes: 10 * 1024 * 1024,
  trainingDispatchBytes: 50_000_000,
  responseBytes: 50 * 1024 * 1024,
  concurrentSamples: 2000,
};

/** What a request takes up while it is being submitted. */
export type Reservation = { readonly bytes: number; readonly of: 'sample' | 'training' };

const DISPATCHED_SAMPLES = 400;
const BACKING_OFF_MS = 10_000;
/** A service that was just too busy gets a twentieth of the bytes and a fortieth of the samples at once. */
const BUSY_BYTES_FACTOR = 20;
const BUSY_COUNT_FACTOR = 40;

/** Holds requests back so that neither the service nor this process is flooded. One for each client. */
export class BackPressure {
  readonly #clock: Clock;
  readonly #sampleBytes: Semaphore;
  readonly #samplesInDispatch = new Semaphore(DISPATCHED_SAMPLES);
  readonly #trainingBytes: Semaphore;
  readonly #responseBytes: Semaphore;
  readonly #samples: Semaphore;
  #busyUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, limits: BackPressureLimits = DEFAULT_LIMITS) {
    this.#clock = clock;
    this.#sampleBytes = new Semaphore(limits.sampleDispatchBytes);
    this.#trainingBytes = new Semaphore(limits.trainingDispatchBytes);
    this.#responseBytes = new Semaphore(limits.responseBytes);
    this.#samples = new Semaphore(limits.concurrentSamples);
  }

  /** The service said that samples come too fast. */
  noteBusy(): void {
    this.#busyUntilMs = this.#clock.nowMs() + BACKING_OFF_MS;
  }

  /** For the time of one submission. */
  async submission({ bytes, of }: Reservation, signal: AbortSignal | undefined): Promise<Release> {
    if (of === 'training') return this.#trainingBytes.acquire(bytes, signal);
    const isBusy = this.#clock.nowMs() < this.#busyUntilMs;
    const releaseCount = await this.#samplesInDispatch.acquire(isBusy ? BUSY_COUNT_FACTOR : 1, signal);
    try {
      const releaseBytes = await this.#sampleBytes.acquire(isBusy ? BUSY_BYTES_FACTOR * bytes : bytes, signal);
      return () => {
        releaseBytes();
        releaseCount();
      };
    } catch (error) {
      releaseCount();
      throw error;
    }
  }

  /** From a sample's submission to its result. */
  sample(signal: AbortSignal | undefined): Promise<Release> {
    return this.#samples.acquire(1, signal);
  }

  /** For the time in which a result of that size is fetched. */
  response(bytes: number, signal: AbortSignal | undefined): Promise<Release> {
    return this.#responseBytes.acquire(bytes, signal);
  }
}
