import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];

/** So that a connection is never closed much later than asked for. */
const MAX_DELAY_MS = 1_000;

/**
 * Calls that failed in passing are made again, as the SDK does by itself, until `stop`. The SDK's own retries do not know when their
 * connection is closed: one that comes due after that throws in a timer, where nobody can catch it, and ends the process.
 */
export class GrpcRetries {
  readonly interceptor: Interceptor;
  private stopped = false;
  /** When the last planned retry comes due, by `performance.now()`. */
  private lastDueMs = 0;

  constructor() {
    const { retryableDecider, delayFunction } = defaultGrpcRetryOptions();
    this.interceptor = makeGrpcRetryInterceptor({
      retryableDecider: (attempt, status) => !this.stopped && retryableDecider(attempt, status),
      delayFunction: (attempt, status) => {
        const delayMs = Math.min(delayFunction(attempt, status), MAX_DELAY_MS);
        this.lastDueMs = Math.max(this.lastDueMs, performance.now() + delayMs);
        return delayMs;
      },
    });
  }

  /** Plans no more retries; resolves when none is due any more, and the connection may be closed. */
  async stop(): Promise<void> {
    this.stopped = true;
    const waitMs = this.lastDueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs + TIMER_SLACK_MS);
  }
}

/** Timers of one process fire in order of their time, to the millisecond. */
const TIMER_SLACK_MS = 10;
