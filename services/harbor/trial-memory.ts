import { availableBytes } from './available-memory.ts';
import { expectedPeakBytes, mayStart, neededBytes, RECENT } from './memory-need.ts';

/** A trial's first guess, until some were measured. */
const PRIOR_BYTES = 300 * 2 ** 20;
/** While trials wait, memory is looked at so often besides at each end of a trial: other programs give some back too. */
const RECHECK_MS = 2_000;

export type TrialMemoryOptions = {
  /** What trials leave for everything else on the machine. */
  readonly reserveBytes: number;
  readonly priorBytes?: number;
  /** What is available now. Default: the machine's, or our control group's. */
  readonly available?: () => Promise<number>;
  readonly recheckMs?: number;
};

/** One trial's turn, from the moment it asks for it. */
export type Turn = {
  /** Resolves when the trial may start. Rejects with the signal's reason. */
  readonly begun: Promise<void>;
  /** What it lacks while it waits, or lacked when it gave up; null otherwise. */
  shortage(): Shortage | null;
  /** The trial was seen to use so much, in bytes. */
  used(bytes: number): void;
  /** The trial has ended, or gave up waiting. */
  end(): void;
};

export type Shortage = { readonly waitedMs: number; readonly availableBytes: number; readonly neededBytes: number };

type Waiting = { readonly sinceMs: number; readonly begin: () => void };

/** Lets trials of a worker start, in the order in which they ask, as long as memory is left for one more. One is always let. */
export class TrialMemory {
  private readonly options: TrialMemoryOptions;
  /** The most that each trial which runs was seen to use. */
  private readonly running = new Map<symbol, number>();
  private readonly waiting = new Map<symbol, Waiting>();
  private peaks: number[] = [];
  private availableBytes = Number.POSITIVE_INFINITY;
  private looking: Promise<void> | null = null;
  private again = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(options: TrialMemoryOptions) {
    this.options = options;
  }

  turn(signal?: AbortSignal): Turn {
    const id = Symbol('trial');
    let last: Shortage | null = null;
    const begun = new Promise<void>((begin, refuse) => {
      signal?.throwIfAborted();
      const giveUp = () => {
        last = this.shortageOf(id);
        this.waiting.delete(id);
        refuse(signal?.reason);
        this.look(); // the one behind may need less time, if not less memory
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      const start = () => {
        signal?.removeEventListener('abort', giveUp);
        begin();
      };
      this.waiting.set(id, { sinceMs: performance.now(), begin: start });
    });
    begun.catch(() => {});
    this.look();
    return {
      begun,
      shortage: () => last ?? this.shortageOf(id),
      used: (bytes) => {
        if (this.running.has(id)) this.running.set(id, Math.max(bytes, this.running.get(id) ?? 0));
      },
      end: () => this.ended(id),
    };
  }

  /** What the next trial is expected to use at its peak, in bytes. */
  get expectedBytes(): number {
    return expectedPeakBytes(this.peaks, this.options.priorBytes ?? PRIOR_BYTES);
  }

  private ended(id: symbol): void {
    const peak = this.running.get(id);
    // One of which nothing is known used nothing here: its sandbox is on another machine.
    if (peak !== undefined) this.peaks = [...this.peaks, peak].slice(-RECENT);
    this.running.delete(id);
    this.waiting.delete(id);
    this.look();
  }

  private get need() {
    const runningBytes = [...this.running.values()];
    return { runningBytes, expectedBytes: this.expectedBytes, reserveBytes: this.options.reserveBytes };
  }

  private shortageOf(id: symbol): Shortage | null {
    const waiting = this.waiting.get(id);
    if (waiting === undefined || !Number.isFinite(this.availableBytes)) return null;
    const { availableBytes, need } = this;
    return { waitedMs: performance.now() - waiting.sinceMs, availableBytes, neededBytes: neededBytes(need) };
  }

  /** Lets those start that may. One look at a time: each must see what the one before let. */
  private look(): void {
    this.again = true;
    this.looking ??= this.lookUntilQuiet().finally(() => {
      this.looking = null;
      if (this.again) this.look();
    });
  }

  private async lookUntilQuiet(): Promise<void> {
    while (this.again) {
      this.again = false;
      if (this.waiting.size === 0) break;
      const available = this.options.available ?? availableBytes;
      this.availableBytes = await available().catch(() => Number.POSITIVE_INFINITY);
      this.letStart();
    }
    this.recheckLater();
  }

  private letStart(): void {
    for (const [id, { begin }] of this.waiting) {
      if (!mayStart({ ...this.need, availableBytes: this.availableBytes })) return;
      this.waiting.delete(id);
      this.running.set(id, 0);
      begin();
    }
  }

  private recheckLater(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = this.waiting.size === 0 ? null : setTimeout(() => this.look(), this.options.recheckMs ?? RECHECK_MS);
    this.timer?.unref();
  }
}
