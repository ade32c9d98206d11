import type { Context } from 'hono';
import { z } from 'zod';
import { HttpFailure } from '../failures.ts';

/** Far above the clients' chunks of 5 MB. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** Parses a JSON body; throws HttpFailure 400 naming the field. */
export async function readJson<Schema extends z.ZodType>(c: Context, schema: Schema): Promise<z.infer<Schema>> {
  return parseWith(schema, await readAnyJson(c));
}

export async function readAnyJson(c: Context): Promise<unknown> {
  try {
    return await c.req.json();
  } catch {
    throw new HttpFailure(400, 'the body is not JSON');
  }
}

export function parseWith<Schema extends z.ZodType>(schema: Schema, value: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new HttpFailure(400, explain(parsed.error));
  return parsed.data;
}

/** `field: what is wrong`, for every problem. */
export const explain = (error: z.ZodError): string =>
  error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`).join('; ');

export const count = z.number().int().nonnegative();
/** Why copies of weights outside the service cannot be had. */
export const NO_EXTERNAL_WEIGHTS =
  'external weights are not served here: checkpoints are files of this machine, in the folder that the trainer was started with as --state';

/** Which part of a list is asked for. */
export const page = (limit: number) =>
  z.object({ limit: z.coerce.number().int().min(0).default(limit), offset: z.coerce.number().int().min(0).default(0) });
export const metadata = z.record(z.string(), z.string()).nullish();
