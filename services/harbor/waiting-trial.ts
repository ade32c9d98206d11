import { RunnerDied, TrialCrashed, TrialRefused } from './errors.ts';
import type { RunnerProcess, TrialMessage } from './runner-process.ts';
import type { TrialWatch } from './trial-watch.ts';

/** What whoever runs a trial tells it, and hears while it runs. */
export type TrialCaller = {
  /** Aborting cancels the trial; `run` rejects with the signal's reason once the sandbox is gone. */
  readonly signal?: AbortSignal;
  /** harbor's TrialEvents: start, environment-start, agent-start, agent-end, verification-start, end, cancel. */
  readonly onEvent?: (event: string) => void;
  /** The most memory that the trial's sandbox was seen to use so far, in bytes; not called for sandboxes of which nothing is known. */
  readonly onMemory?: (bytes: number) => void;
};

/** A trial that its process has not said the last word about. */
export type WaitingTrial = { readonly process: RunnerProcess; onMessage(message: TrialMessage): void; onDeath(error: Error): void };

const TOLD_TO_END = 'the harbor runner cancelled the trial because it was told to end';

/** Makes of the runner's messages about one trial what its caller hears, and of the last one how `run` ends. */
export function waitingFor(
  process: RunnerProcess,
  caller: TrialCaller,
  watch: TrialWatch,
  resolve: (trialDir: string) => void,
  reject: (error: unknown) => void,
): WaitingTrial {
  let blockedAt: string | null = null;
  return {
    process,
    // Its siblings may be tried again: it alone is to blame.
    onDeath: (error) =>
      reject(blockedAt === null ? error : new TrialCrashed(`the trial let nothing else run (${blockedAt}): ${error.message}`)),
    onMessage(message) {
      if (message.type === 'blocked') {
        blockedAt = message.where;
        return;
      }
      if (message.type === 'event') {
        watch.onEvent(message.event);
        blockedAt = null;
        return caller.onEvent?.(message.event);
      }
      if (message.type === 'memory') return caller.onMemory?.(message.bytes);
      if (message.peakMemoryBytes !== null) caller.onMemory?.(message.peakMemoryBytes);
      if (caller.signal?.aborted) return reject(caller.signal.reason);
      if (message.type === 'done' && !message.cancelled) return resolve(message.trialDir);
      if (watch.reason !== null) return reject(watch.reason);
      // Not by us: the runner was told to end, with all that it ran.
      if (message.type === 'done' || message.kind === 'cancelled') return reject(new RunnerDied(TOLD_TO_END));
      if (message.kind === 'bad-request' || message.kind === 'bad-trial') return reject(new TrialRefused(message.error));
      reject(new TrialCrashed(message.error));
    },
  };
}
