import { CancellationScope, condition } from '@temporalio/workflow';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import { keeping } from './proxies.ts';

/** A person who takes longer finds a training that may have to be rebuilt; keeping it alive for days would cost polling all the while. */
const LONGEST_WAIT = '1 hour';

/**
 * Has the training on the service kept alive while a run trains, by an activity that no training call depends on. A long wait for a
 * person lets it go: the next training call finds out whether the service still has it.
 */
export class KeepAlive {
  private readonly isWaiting: () => boolean;
  private scope: CancellationScope | null = null;
  private ended: Promise<void> = Promise.resolve();

  /** `isWaiting`: whether the run waits for a person. */
  constructor(isWaiting: () => boolean) {
    this.isWaiting = isWaiting;
  }

  /** Does nothing when it is begun already. */
  start(pinned: PinnedRun, generation: number): void {
    if (this.scope) return;
    const scope = new CancellationScope();
    this.scope = scope;
    // It ends by being cancelled, here or with the run.
    this.ended = scope.run(() => this.keep(pinned, generation)).catch(() => {});
  }

  async stop(): Promise<void> {
    this.scope?.cancel();
    await this.ended;
    this.scope = null;
  }

  private async keep({ ref: run, plan }: PinnedRun, generation: number): Promise<void> {
    for (;;) {
      const scope = new CancellationScope();
      const kept = scope
        .run(() => keeping(plan).keepTraining.executeWithOptions({ summary: 'training kept alive' }, [{ run, generation }]))
        .catch(() => {});
      await this.longWait();
      scope.cancel();
      await kept;
      await condition(() => !this.isWaiting());
    }
  }

  /** Returns once a person has been waited for so long. */
  private async longWait(): Promise<void> {
    for (;;) {
      await condition(this.isWaiting);
      if (!(await condition(() => !this.isWaiting(), LONGEST_WAIT))) return;
    }
  }
}
