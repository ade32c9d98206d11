import type { PinnedRun, RunPlan } from '../../core/run/pinned-run.ts';
import { untilCancelled } from './cancelled.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { resolvedAs } from './runs.ts';

/** One activity that is held up when it comes: until it is cancelled, or until the test lets it go on. */
export type Hold = {
  readonly activity: keyof AllActivities;
  /** Which of its calls; the first one that is meant, and all after it. */
  readonly when?: (order: never) => boolean;
  readonly until: 'cancelled' | 'released';
};

/** A world of fakes for one run. It writes down what was called, knows what is in flight, and holds one activity up. */
export class HeldWorld {
  readonly calls: { readonly activity: keyof AllActivities; readonly order: never }[] = [];
  /** Names of activities in flight. */
  readonly inFlight: string[] = [];
  readonly activities: AllActivities;
  private readonly hold: Hold | null;
  private readonly held = Promise.withResolvers<void>();
  private readonly released = Promise.withResolvers<void>();

  constructor(hold: Hold | null, over: Partial<AllActivities>, run: Partial<PinnedRun>, plan: Partial<RunPlan>) {
    this.hold = hold;
    const keepTraining = (): Promise<never> => untilCancelled();
    const fakes = fakeActivities({ keepTraining, resolveRun: resolvedAs(run, plan), ...over });
    this.activities = new Proxy(fakes, {
      get: (_, activity: keyof AllActivities) => (order: never) => this.called(activity, order, () => fakes[activity](order)),
    });
  }

  /** Resolves when the activity that is held up has come. */
  get reached(): Promise<void> {
    return this.held.promise;
  }

  release(): void {
    this.released.resolve();
  }

  /** What a kind of activity was called with, told by `tell`. */
  told<Name extends keyof AllActivities>(activity: Name, tell: (order: Parameters<AllActivities[Name]>[0]) => string): string[] {
    return this.calls.filter((call) => call.activity === activity).map(({ order }) => tell(order));
  }

  private async called(activity: keyof AllActivities, order: never, work: () => unknown): Promise<unknown> {
    this.calls.push({ activity, order });
    this.inFlight.push(activity);
    try {
      if (this.hold?.activity === activity && (this.hold.when?.(order) ?? true)) {
        this.held.resolve();
        await (this.hold.until === 'cancelled' ? untilCancelled() : this.released.promise);
      }
      return await work();
    } finally {
      this.inFlight.splice(this.inFlight.indexOf(activity), 1);
    }
  }
}
