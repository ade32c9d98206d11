import { ApplicationFailure } from '@temporalio/common';

/** Longest text of a failure that is sent, in characters. A longer one than the server takes is sent again for ever; it comes twice, as message and stack. */
const MOST_FAILURE_CHARS = 20_000;

/** How many causes of a failure are looked at; more are never made. */
const MOST_CAUSES = 20;

/** The same error, with texts and details that the server takes. */
export function sendable(error: unknown): unknown {
  let each: unknown = error;
  for (let depth = 0; depth < MOST_CAUSES && each instanceof Error; depth++) {
    for (const key of ['message', 'stack'] as const) cut(each, key);
    if (each instanceof ApplicationFailure && textOf(each.details).length > MOST_FAILURE_CHARS)
      Object.defineProperty(each, 'details', { value: ['details left out: too long'] });
    each = each.cause;
  }
  return error;
}

function cut(error: Error, key: 'message' | 'stack'): void {
  const text = error[key];
  if (text === undefined || text.length <= MOST_FAILURE_CHARS) return;
  const value = `${text.slice(0, MOST_FAILURE_CHARS)} … and ${text.length - MOST_FAILURE_CHARS} characters more`;
  Object.defineProperty(error, key, { value, configurable: true, writable: true });
}

function textOf(details: unknown): string {
  try {
    return JSON.stringify(details) ?? '';
  } catch {
    return ''; // the converter says what is wrong with it
  }
}
