import { EXIT } from './exit-codes.ts';

/** Hears Ctrl-C (SIGINT), SIGTERM and SIGHUP until it is released. */
export type Interrupt = {
  /** Fires at the first. */
  readonly signal: AbortSignal;
  /** What a further one does; it ends the process as long as nobody says otherwise. */
  onAgain(action: () => void): void;
  release(): void;
};

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export function onInterrupt(): Interrupt {
  const controller = new AbortController();
  let again: () => void = () => process.exit(EXIT.interrupted);
  // It stays registered after the first: log-update ends the process by itself when it finds no other listener.
  const hear = () => (controller.signal.aborted ? again() : controller.abort());
  for (const name of SIGNALS) process.on(name, hear);
  return {
    signal: controller.signal,
    onAgain: (action) => {
      again = action;
    },
    release: () => {
      for (const name of SIGNALS) process.off(name, hear);
    },
  };
}

export const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';

/** The promise's outcome, or the signal's AbortError if that comes first. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
