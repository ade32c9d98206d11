import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../http/clock.ts';

/** For this client's tests: a clock on which every pause passes at once. */
export class FakeClock implements Clock {
  /** The pauses so far, ms. */
  readonly pausesMs: number[] = [];
  #nowMs = 0;

  readonly nowMs = () => this.#nowMs;
  readonly epochMs = () => Date.UTC(2030, 0) + this.#nowMs;

  readonly sleep = async (ms: number, signal: AbortSignal | undefined) => {
    signal?.throwIfAborted();
    this.pausesMs.push(ms);
    this.#nowMs += ms;
    await setImmediate();
    signal?.throwIfAborted();
  };

  advance(ms: number): void {
    this.#nowMs += ms;
  }
}
