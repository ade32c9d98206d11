import type { WaitReport } from '../services/tinker/index.ts';

/** A wait that was not reported again for this long has ended: a poll is answered within 45 s. */
const FRESH_MS = 60_000;
/** Shorter waits are the ordinary course of things. */
const WORTH_TELLING_MS = 15_000;

/** What this worker's calls of the training service wait for: the newest report of each kind of call. */
export class ServiceWaits {
  readonly #nowMs: () => number;
  readonly #newest = new Map<string, { readonly report: WaitReport; readonly atMs: number }>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  readonly note = (report: WaitReport): void => {
    this.#newest.set(report.call, { report, atMs: this.#nowMs() });
  };

  /** The longest wait that goes on, for the heartbeats of activities; null when none is worth telling. */
  longest(): WaitReport | null {
    const freshSinceMs = this.#nowMs() - FRESH_MS;
    const going = [...this.#newest.values()].filter(({ report, atMs }) => atMs >= freshSinceMs && report.waitedMs >= WORTH_TELLING_MS);
    return going.map(({ report }) => report).sort((a, b) => b.waitedMs - a.waitedMs)[0] ?? null;
  }
}
