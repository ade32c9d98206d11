import { z } from 'zod';
import { ERROR_STATUS, type ErrorCode } from './error-codes.ts';

const DEFAULT_WAIT_MS = 10_000;
const EXPECTED: ErrorCode = 'unknown_trial';
const errorBody = z.object({ error: z.object({ code: z.literal(EXPECTED) }) });

/**
 * Asks a public URL for a trial that is none, as an agent would ask for its own. Null when a gateway answers, which one cannot be told;
 * else what came instead, for a person. Redirects are not followed: an agent's POST would not survive one. @throws when `signal` aborts.
 */
export async function otherThanGateway(publicUrl: string, signal: AbortSignal, waitMs = DEFAULT_WAIT_MS): Promise<string | null> {
  const asked = `GET ${publicUrl}/t/none/v1/models`;
  const waits = AbortSignal.timeout(waitMs);
  try {
    const answer = await fetch(`${publicUrl}/t/none/v1/models`, { redirect: 'manual', signal: AbortSignal.any([signal, waits]) });
    const text = await answer.text();
    if (answer.status === ERROR_STATUS[EXPECTED] && errorBody.safeParse(json(text)).success) return null;
    return `${asked} answered HTTP ${answer.status}: ${text.trim().slice(0, 200) || '(nothing)'}`;
  } catch (error) {
    signal.throwIfAborted();
    return `${asked}: ${waits.aborted ? `no answer in ${waitMs} ms` : reason(error)}`;
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** fetch says "fetch failed"; its cause says why. */
function reason(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
