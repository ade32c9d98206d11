import type { z } from 'zod';
import { ServiceFailed } from '../errors.ts';
import type { HttpAnswer } from './http.ts';
import { parseLooseJson } from './loose-json.ts';

const decoder = new TextDecoder();

/** @throws ServiceFailed when the answer is no JSON of this shape */
export function parseJson<Schema extends z.ZodType>(answer: HttpAnswer, schema: Schema, call: string, requestId?: string): z.infer<Schema> {
  let value: unknown;
  try {
    value = parseLooseJson(decoder.decode(answer.body));
  } catch (cause) {
    throw new ServiceFailed('the answer is no JSON; is TINKER_BASE_URL a Tinker-compatible service?', {
      call,
      requestId: requestId ?? null,
      cause,
    });
  }
  return parseValue(value, schema, call, requestId);
}

/** @throws ServiceFailed naming the first field that does not fit */
export function parseValue<Schema extends z.ZodType>(value: unknown, schema: Schema, call: string, requestId?: string): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.') || 'the whole body';
  const context = { call, requestId: requestId ?? null, cause: parsed.error };
  throw new ServiceFailed(`the answer does not fit the protocol at ${field}: ${issue?.message}`, context);
}
