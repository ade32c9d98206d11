import {
  ApplicationFailure,
  type ConverterHint,
  DefaultPayloadConverter,
  type Payload,
  type SerializationContext,
} from '@temporalio/common';

/** Stands for a payload that could not be read; no input or message has this form, so that each is refused by its own rules. */
export type Unreadable = { readonly unreadablePayload: string };

/** Where a value holds a number that JSON cannot write, as `rows.0.usd`; null when it holds none. */
function notFinite(value: unknown, path: string): { readonly path: string; readonly value: number } | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : { path, value };
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return null;
  for (const [key, part] of Object.entries(value)) {
    const found = notFinite(part, path === '' ? key : `${path}.${key}`);
    if (found) return found;
  }
  return null;
}

/**
 * The SDK's converter, but NaN and infinities are refused by name: as JSON they would arrive as null, which elsewhere means that nobody knows
 * the number, and a cap that is compared with it holds nothing back. And a payload that it cannot read becomes a value that says so. Thrown inside a workflow, the same failure
 * would stop the workflow task, again and again, for as long as the payload is in history: one garbled signal would stall a run.
 */
class PatientPayloadConverter extends DefaultPayloadConverter {
  override toPayload<T>(value: T, context?: SerializationContext, hint?: ConverterHint<T>): Payload {
    const found = notFinite(value, '');
    if (found)
      throw ApplicationFailure.nonRetryable(
        `${found.path || 'the value'} is ${found.value}, which is no number to go on with`,
        'NotFinite',
      );
    return super.toPayload(value, context, hint);
  }

  override fromPayload<T>(payload: Payload, context?: SerializationContext, hint?: ConverterHint<T>): T {
    try {
      return super.fromPayload<T>(payload, context, hint);
    } catch (error) {
      return { unreadablePayload: (error as Error).message } satisfies Unreadable as T;
    }
  }
}

/** The name that Temporal's workers look for. */
export const payloadConverter = new PatientPayloadConverter();
