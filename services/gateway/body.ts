import type { Context } from 'hono';
import { GatewayError } from './errors.ts';

/**
 * The body, if it is not larger than `maxBytes`. A declared length is enforced by the HTTP parser, so only bodies without one are
 * counted as they come (hono's own limit counts always, which costs more than the rest of a call).
 */
export async function bodyText(c: Context, maxBytes: number): Promise<string> {
  const tooLarge = () => new GatewayError('request_too_large', `The request body is larger than ${maxBytes} bytes.`);
  const declared = c.req.header('content-length');
  if (Number(declared ?? 0) > maxBytes) throw tooLarge();
  if (declared !== undefined) return c.req.text();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of c.req.raw.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
