/** Waits for work that others may share and that cannot be broken off. @throws the signal's reason as soon as it is aborted; the work goes on */
export async function unlessAborted<T>(work: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!(work instanceof Promise)) return work;
  if (signal === undefined) return work;
  if (signal.aborted) {
    work.catch(() => {});
    throw signal.reason;
  }
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
