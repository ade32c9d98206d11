import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 60_000;

/** Asks until the answer is yes; a question that fails is asked again. */
export async function until(question: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  for (let why: unknown; ; await sleep(50)) {
    const yes = await question().catch((error) => {
      why = error;
      return false;
    });
    if (yes) return;
    if (performance.now() > deadlineMs) throw new Error(`not within ${PATIENCE_MS / 1000} s`, { cause: why });
  }
}
