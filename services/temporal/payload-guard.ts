import { ApplicationFailure, RawValue } from '@temporalio/common';
import { payloadConverter } from './payload-converter.ts';

/** The server's limit of one payload (`limit.blobSize.error`). What passes it is refused, in a way that is tried again for ever. */
const SERVER_PAYLOAD_BYTES = 2 * 1024 * 1024;

/** The most that we send: a message may carry two values, and whatever the server adds. */
export const MOST_PAYLOAD_BYTES = SERVER_PAYLOAD_BYTES / 2;

/** A value on its way through Temporal, as a person knows it: `activity closeStep`, and what of it. */
export type Passage = { readonly of: string; readonly direction: 'input' | 'result' };

/**
 * The value as it is sent. Fails for good, by name, with what cannot be sent: `PayloadTooLarge`, which the server would refuse again
 * and again, and `NotANumber` for a NaN or an infinity, which JSON would silently turn into null.
 */
export function guarded(value: unknown, { of, direction }: Passage): RawValue {
  const strange = notFinite(value, '');
  if (strange)
    throw ApplicationFailure.nonRetryable(
      `the ${direction} of ${of} holds ${strange.number} at ${strange.path || 'its top'}: messages are JSON, which has no such number. Where it comes from must say null or fail`,
      'NotANumber',
    );
  const raw = new RawValue(value, payloadConverter);
  const bytes = raw.payload.data?.byteLength ?? 0;
  if (bytes > MOST_PAYLOAD_BYTES)
    throw ApplicationFailure.nonRetryable(
      `the ${direction} of ${of} has ${bytes} bytes; at most ${MOST_PAYLOAD_BYTES} are sent, half of what the server takes. Keep the data as a blob and send its reference, or make the batch smaller`,
      'PayloadTooLarge',
    );
  return raw;
}

type Strange = { readonly path: string; readonly number: number };

/** The first number in a value, as JSON reads it, that is none. */
function notFinite(value: unknown, path: string): Strange | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : { path, number: value };
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || value instanceof RawValue) return null;
  for (const [key, part] of Object.entries(value)) {
    const found = notFinite(part, path === '' ? key : `${path}.${key}`);
    if (found) return found;
  }
  return null;
}
