import { createHash } from 'node:crypto';
import type { ForwardBackwardCall } from './loss-batch.ts';
import type { CallIdentity, Operation } from './run-journal.ts';

/**
 * Tells a repeat of a call from another call under the same sequence number. What counts is what was asked for, not the bytes:
 * clients encode a repeat anew, and the order of map entries may differ then.
 */
export const callOf = (operation: Operation, body: Uint8Array = new Uint8Array()): CallIdentity => ({
  op: operation.op,
  sha256: createHash('sha256').update(JSON.stringify(operation)).update(body).digest('hex'),
});

/** Of anything that JSON can say, e.g. a request body. */
export const jsonCall = (op: string, body: unknown): CallIdentity => ({
  op,
  sha256: createHash('sha256').update(JSON.stringify(body)).digest('hex'),
});

/** Of a call whose body says nothing that could be carried out. */
export const unreadableCall = (op: string, body: Uint8Array): CallIdentity => ({
  op,
  sha256: createHash('sha256').update('unreadable').update(body).digest('hex'),
});

export function lossCall({ batch, forwardOnly }: ForwardBackwardCall): CallIdentity {
  const { datums, ...settings } = batch;
  const hash = createHash('sha256').update(JSON.stringify({ ...settings, forwardOnly, datums: datums.length }));
  for (const datum of datums) {
    for (const [field, value] of Object.entries(datum) as [string, number | Int32Array | Float32Array][]) {
      hash.update(`${field} ${typeof value === 'number' ? value : value.length};`);
      if (typeof value !== 'number') hash.update(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    }
  }
  return { op: 'forward_backward', sha256: hash.digest('hex') };
}

export const isSameCall = (a: CallIdentity, b: CallIdentity): boolean => a.op === b.op && a.sha256 === b.sha256;
