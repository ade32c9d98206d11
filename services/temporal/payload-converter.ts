import { type ConverterHint, DefaultPayloadConverter, type Payload, type SerializationContext } from '@temporalio/common';

/** Stands for a payload that could not be read; no input or message has this form, so that each is refused by its own rules. */
export type Unreadable = { readonly unreadablePayload: string };

/**
 * The SDK's converter, but a payload that it cannot read becomes a value that says so. Thrown inside a workflow, the same failure
 * would stop the workflow task, again and again, for as long as the payload is in history: one garbled signal would stall a run.
 */
class PatientPayloadConverter extends DefaultPayloadConverter {
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
