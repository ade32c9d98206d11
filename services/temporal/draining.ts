import { constants } from 'node:os';

/** A worker as the process sees it that must end it. */
export type Drained = {
  /** Takes no new work; settles `ended` when what runs has ended or was handed over. */
  readonly shutdown: () => void;
  readonly ended: Promise<unknown>;
  /** What runs now, for a person; empty when nothing does. */
  readonly running: () => string;
  readonly drainSeconds: number;
};

/** The process, or what stands for it. */
export type Host = {
  readonly on: (signal: NodeJS.Signals, then: () => void) => unknown;
  readonly exit: (code: number) => void;
  readonly tell: (line: string) => void;
};

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * The first signal ends a worker in order: no new work, and time for what runs. A second one ends the process at once, with the signal's
 * exit code; what ran is then missed by the server as after a crash. Returns how to begin without a signal.
 */
export function drainOnSignals(worker: Drained, host: Host): (why: string) => void {
  let draining = false;
  const begin = (why: string) => {
    if (draining) return;
    draining = true;
    tellDrain(worker, why, host.tell);
    worker.shutdown();
  };
  for (const signal of SIGNALS)
    host.on(signal, () => {
      if (!draining) return begin(signal);
      host.tell(`${signal} again: ending at once${listed(' and leaving ', worker.running())}`);
      host.exit(128 + constants.signals[signal]);
    });
  return begin;
}

function tellDrain({ ended, running, drainSeconds }: Drained, why: string, tell: Host['tell']): void {
  const waits = running();
  tell(
    waits === '' ? `${why}: no new work; nothing runs` : `${why}: no new work; up to ${drainSeconds} s for ${waits}. Again: end at once`,
  );
  const late = setTimeout(() => {
    if (running() !== '') tell(`${drainSeconds} s are over: ${running()} told to stop, for other workers to take over`);
  }, drainSeconds * 1000);
  const settled = () => clearTimeout(late);
  ended.then(settled, settled);
}

const listed = (before: string, text: string) => (text === '' ? '' : before + text);
