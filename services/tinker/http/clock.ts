/** Time as the client sees it; tests give one in which long waits pass at once. */
export type Clock = {
  /** Milliseconds on a scale that only grows. */
  readonly nowMs: () => number;
  /** Milliseconds since 1970. */
  readonly epochMs: () => number;
  /** @throws the signal's reason as soon as it is aborted */
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

/** Node's timers fire at once above it. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  epochMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const onTime = () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const timer = setTimeout(onTime, Math.min(ms, LONGEST_TIMER_MS));
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
};
