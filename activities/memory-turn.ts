import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { TrialMemory } from '../services/harbor/index.ts';
import { workerShutdown } from './handover.ts';

/** A trial that waits longer is given back, perhaps to another worker: its own time has begun to run. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** One trial's wait for memory on this worker. */
export class MemoryTurn {
  private readonly memory: Pick<TrialMemory, 'turn'>;
  private readonly drain: AbortSignal;
  private readonly longestWaitMs: number;
  private turn: ReturnType<TrialMemory['turn']> | null = null;

  constructor(memory: Pick<TrialMemory, 'turn'>, drain: AbortSignal, longestWaitMs = LONGEST_WAIT_MS) {
    this.memory = memory;
    this.drain = drain;
    this.longestWaitMs = longestWaitMs;
  }

  /** Resolves when the trial may start. Fails when it is cancelled, its worker told to end, or no memory comes free for long. */
  async begun(): Promise<void> {
    const tooLong = AbortSignal.timeout(this.longestWaitMs);
    const cancelled = cancellationSignal();
    this.turn = this.memory.turn(AbortSignal.any([cancelled, this.drain, tooLong]));
    try {
      await this.turn.begun;
    } catch (error) {
      if (cancelled.aborted) throw cancelled.reason;
      if (this.drain.aborted) throw workerShutdown();
      if (!tooLong.aborted) throw error;
      const minutes = Math.round(this.longestWaitMs / 60_000);
      throw ApplicationFailure.retryable(
        `no memory came free for this trial within ${minutes} min: ${this.wait()?.reason ?? ''}`,
        'NoMemory',
      );
    }
  }

  /** What it waits for, as heartbeats tell it; null when it does not. */
  wait() {
    const shortage = this.turn?.shortage() ?? null;
    if (shortage === null) return null;
    const { waitedMs, availableBytes, neededBytes } = shortage;
    const reason = `${gigabytes(availableBytes)} of memory are available, ${gigabytes(neededBytes)} are needed for one more trial`;
    return { call: 'the trial', waitedMs, queueState: null, reason };
  }

  readonly used = (bytes: number): void => this.turn?.used(bytes);

  end(): void {
    this.turn?.end();
  }
}

const gigabytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GB`;
