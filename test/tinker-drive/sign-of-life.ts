import { setTimeout as sleep } from 'node:timers/promises';

const ASK_AGAIN_AFTER_MS = 250;

/** Whether the service answers its health check, with whatever status, within so many ms. */
export async function givesSignOfLife(baseUrl: string, patienceMs: number): Promise<boolean> {
  const signal = AbortSignal.timeout(patienceMs);
  while (!signal.aborted) {
    try {
      await (await fetch(`${baseUrl}/api/v1/healthz`, { signal })).body?.cancel();
      return true;
    } catch {
      await sleep(ASK_AGAIN_AFTER_MS);
    }
  }
  return false;
}
