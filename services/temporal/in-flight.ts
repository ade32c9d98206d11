import type { ActivityInterceptorsFactory } from '@temporalio/worker';

/** The activities that run in this process right now, by type. */
export class InFlight {
  private readonly running = new Map<string, number>();

  /** Counts the activities of each worker that it is given to. */
  readonly interceptor: ActivityInterceptorsFactory = ({ info: { activityType } }) => ({
    inbound: {
      execute: async (input, next) => {
        this.add(activityType, 1);
        try {
          return await next(input);
        } finally {
          this.add(activityType, -1);
        }
      },
    },
  });

  /** `runTrial × 3, trainBatch × 1`; empty when nothing runs. */
  toString(): string {
    return [...this.running].map(([type, count]) => `${type} × ${count}`).join(', ');
  }

  private add(type: string, change: number): void {
    const count = (this.running.get(type) ?? 0) + change;
    if (count === 0) this.running.delete(type);
    else this.running.set(type, count);
  }
}
