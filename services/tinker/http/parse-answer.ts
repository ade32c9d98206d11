import type { z } from 'zod';
import { ServiceFailed } from '../errors.ts';
import type { HttpAnswer } from './http.ts';
import { parseLooseJson } from './loose-json.ts';

/** Takes this client's secrets out of a text. */
export type Scrubber = { readonly scrub: (text: string) => string };

const decoder = new TextDecoder();

/** @throws ServiceFailed when the answer is no JSON of this shape */
export function parseJson<Schema extends z.ZodType>(
  answer: HttpAnswer,
  schema: Schema,
  scrubber: Scrubber,
  call: string,
  requestId?: string,
): z.infer<Schema> {
  return parseValue(jsonOf(answer, call, requestId), schema, scrubber, call, requestId);
}

/** Without a cause: the parser's own words quote the beginning of the body, also of a secret in it. */
function jsonOf(answer: HttpAnswer, call: string, requestId: string | undefined): unknown {
  try {
    return parseLooseJson(decoder.decode(answer.body));
  } catch {
    const message = 'the answer is no JSON; is TINKER_BASE_URL a Tinker-compatible service?';
    throw new ServiceFailed(message, { call, requestId: requestId ?? null });
  }
}

/** @throws ServiceFailed naming the first field that does not fit; the service may have chosen the name */
export function parseValue<Schema extends z.ZodType>(
  value: unknown,
  schema: Schema,
  scrubber: Scrubber,
  call: string,
  requestId?: string,
): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.') || 'the whole body';
  const what = scrubber.scrub(`${field}: ${issue?.message}`);
  throw new ServiceFailed(`the answer does not fit the protocol at ${what}`, { call, requestId: requestId ?? null });
}
