/** Trials whose use of memory says what the next one's will be. */
export const RECENT = 100;
/** With fewer measured the first guess stands, unless one of them used more. */
const FEW = 5;
const QUANTILE = 0.95;
/** What a trial's own place in runner and gateway takes at least. */
const LEAST_BYTES = 16 * 2 ** 20;

/** What one more trial must be expected to use at its peak: nearly the most that recent ones did (`peaks`, the latest last, in bytes). */
export function expectedPeakBytes(peaks: readonly number[], priorBytes: number): number {
  const recent = peaks.slice(-RECENT).sort((a, b) => a - b);
  if (recent.length < FEW) return Math.max(priorBytes, ...recent);
  return Math.max(LEAST_BYTES, recent[Math.ceil(QUANTILE * recent.length) - 1] ?? 0);
}

export type MemoryState = {
  /** For each trial that runs, the most that it is known to have used so far. */
  readonly runningBytes: readonly number[];
  /** What the machine, or our part of it, has left now. */
  readonly availableBytes: number;
  /** What one trial is expected to use at its peak. */
  readonly expectedBytes: number;
  /** What is to be left for everything else. */
  readonly reserveBytes: number;
};

/** What a further trial needs to be available: its own peak, the reserve, and what those that run are still going to take. */
export function neededBytes({ runningBytes, expectedBytes, reserveBytes }: Omit<MemoryState, 'availableBytes'>): number {
  const growing = runningBytes.reduce((sum, used) => sum + Math.max(0, expectedBytes - used), 0);
  return reserveBytes + expectedBytes + growing;
}

/** Whether a further trial may be started. The only one always may: it would otherwise wait for ever. */
export const mayStart = (state: MemoryState): boolean => state.runningBytes.length === 0 || state.availableBytes >= neededBytes(state);
