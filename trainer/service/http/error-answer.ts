import type { Context } from 'hono';
import { HttpFailure, UserError } from '../failures.ts';

/** What a request gets whose handling threw. */
export function errorAnswer(error: Error, c: Context): Response {
  if (error instanceof HttpFailure) return c.json({ detail: error.message }, error.status);
  if (error instanceof UserError) return c.json({ detail: error.message }, 400);
  process.stderr.write(`${c.req.method} ${c.req.path}: ${error.stack ?? error.message}\n`);
  return c.json({ detail: `internal error: ${error.message}` }, 500);
}
