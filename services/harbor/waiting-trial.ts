import { RunnerDied, TrialCrashed, TrialRefused } from './errors.ts';
import type { RunnerProcess, TrialMessage } from './runner-process.ts';
import type { TrialWatch } from './trial-watch.ts';

/** A trial that is waited for, in the process that runs it. */
export type WaitingTrial = { readonly process: RunnerProcess; onMessage(message: TrialMessage): void; onDeath(error: Error): void };

type Asked = {
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: string) => void;
  readonly onMemory?: (bytes: number) => void;
};

const TOLD_TO_END = 'the harbor runner cancelled the trial because it was told to end';

/** Makes of what its process says of a trial the folder that it left, or the error that it ended with. */
export function waitingTrial(
  process: RunnerProcess,
  { signal, onEvent, onMemory }: Asked,
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
      if (message.type === 'memory') return onMemory?.(message.bytes);
      if (message.type === 'event') {
        blockedAt = null;
        watch.onEvent(message.event);
        return onEvent?.(message.event);
      }
      if (message.peakMemoryBytes !== null) onMemory?.(message.peakMemoryBytes);
      if (signal?.aborted) return reject(signal.reason);
      if (message.type === 'done' && !message.cancelled) return resolve(message.trialDir);
      if (message.type === 'failed' && (message.kind === 'bad-request' || message.kind === 'bad-trial'))
        return reject(new TrialRefused(message.error));
      if (message.type === 'failed' && message.kind === 'crashed') return reject(new TrialCrashed(message.error));
      // Cancelled: by its limit, or because the runner was told to end, with all that it ran.
      reject(watch.reason ?? new RunnerDied(TOLD_TO_END));
    },
  };
}
