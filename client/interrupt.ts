/** A signal that fires at the first Ctrl-C (or SIGTERM, SIGHUP), until `release` is called; the next one then ends the process as usual. */
export type Interrupt = { readonly signal: AbortSignal; release(): void };

export function onInterrupt(): Interrupt {
  const controller = new AbortController();
  const abort = () => {
    release();
    controller.abort();
  };
  const release = () => {
    for (const name of SIGNALS) process.off(name, abort);
  };
  for (const name of SIGNALS) process.on(name, abort);
  return { signal: controller.signal, release };
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export const isAbort = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';
