import type { TrialLimits } from '../../core/run/trial-time.ts';
import { TrialCrashed } from './errors.ts';

/** What harbor does after each of its events, in words. */
const DOING: Readonly<Record<string, string>> = {
  'environment-start': 'starting its sandbox',
  'agent-start': 'with its agent at work',
  'agent-end': 'putting away what its agent did',
  'verification-start': 'being graded',
  end: 'clearing away its sandbox',
};

/** Waits however long a trial takes. */
export const NO_LIMITS: TrialLimits = { limitMs: Number.POSITIVE_INFINITY, graceMs: Number.POSITIVE_INFINITY };

type Acts = {
  /** Tells the trial to end. */
  cancel(): void;
  /** Stops waiting for it: it runs on, and nobody will hear of it. */
  giveUp(error: unknown): void;
};

/** Sees to it that a trial comes to an end, whatever its environment, agent and grader make of being told so. */
export class TrialWatch implements Disposable {
  #limits: TrialLimits;
  #acts: Acts;
  #signal: AbortSignal | undefined;
  #limit: NodeJS.Timeout | undefined;
  #grace: NodeJS.Timeout | undefined;
  #isCancelled = false;
  #doing = 'beginning';
  #overdue: TrialCrashed | null = null;
  #abort = () => this.#cancel();

  constructor(limits: TrialLimits, signal: AbortSignal | undefined, acts: Acts) {
    this.#limits = limits;
    this.#acts = acts;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#abort);
    this.#limit = after(limits.limitMs, () => this.#end());
  }

  onEvent(event: string): void {
    this.#doing = DOING[event] ?? this.#doing;
  }

  /** Why the trial was cancelled: an abort, or its limit; null if it was not. */
  get reason(): unknown {
    return this.#signal?.aborted ? this.#signal.reason : this.#overdue;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#limit);
    clearTimeout(this.#grace);
    this.#signal?.removeEventListener('abort', this.#abort);
  }

  #end(): void {
    const limit = `the trial was not over after ${seconds(this.#limits.limitMs)}, the most it may take in all`;
    this.#overdue = new TrialCrashed(`${limit}; it was cancelled while ${this.#doing}`);
    this.#cancel();
  }

  #cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#acts.cancel();
    this.#grace = after(this.#limits.graceMs, () => this.#giveUp());
  }

  #giveUp(): void {
    const { reason } = this;
    if (reason !== this.#overdue || this.#overdue === null) {
      this.#acts.giveUp(reason);
      return;
    }
    const words = `${this.#overdue.message}, and had not ended ${seconds(this.#limits.graceMs)} later, so it was given up`;
    this.#acts.giveUp(new TrialCrashed(`${words}; the harbor runner is replaced once its other trials are over`));
  }
}

/** A timer takes no more than 24 days; what is longer never comes. */
const after = (ms: number, act: () => void) => (ms < 2 ** 31 ? setTimeout(act, ms) : undefined);

const seconds = (ms: number): string => `${+(ms / 1000).toFixed(1)} s`;
