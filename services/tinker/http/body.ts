import type { Readable } from 'node:stream';

export type BodyLimits = {
  /** A body that drips is no answer. */
  readonly totalMs: number;
  readonly maxBytes: number;
};

export class BodyTooLarge extends Error {}
export class BodyTooSlow extends Error {}

/** @throws BodyTooLarge, before more than `maxBytes` are held; BodyTooSlow; what breaks the connection off */
export async function readBody(body: Readable, declaredBytes: number | null, { totalMs, maxBytes }: BodyLimits): Promise<Uint8Array> {
  const tooLarge = () => new BodyTooLarge(`the answer has more than the ${maxBytes} bytes that are read at most`);
  const timer = setTimeout(() => body.destroy(new BodyTooSlow(`the answer was not complete after ${totalMs} ms`)), totalMs);
  const parts: Uint8Array[] = [];
  let byteCount = 0;
  try {
    if ((declaredBytes ?? 0) > maxBytes) throw tooLarge();
    for await (const part of body as AsyncIterable<Uint8Array>) {
      byteCount += part.byteLength;
      if (byteCount > maxBytes) throw tooLarge();
      parts.push(part);
    }
  } catch (error) {
    body.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, byteCount);
}
