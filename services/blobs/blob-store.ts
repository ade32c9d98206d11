import { createHash } from 'node:crypto';
import type { BlobRef } from '../../core/ids.ts';
import type { ObjectStore } from './object-store.ts';
import { placeOf } from './run-keys.ts';

/** A ref that the store does not hold, or that is no ref at all. */
export class BlobMissing extends Error {
  override readonly name = 'BlobMissing';
  readonly ref: string;
  constructor(ref: string) {
    super(`no blob ${ref} in the store: was the blob folder moved, or is this worker configured with another one?`);
    this.ref = ref;
  }
}

/** Bytes that no longer match their address. */
export class BlobCorrupt extends Error {
  override readonly name = 'BlobCorrupt';
  constructor(ref: string) {
    super(`blob ${ref} does not match its address: it was damaged; restore it from a copy`);
  }
}

/** Content-addressed bytes. Each belongs to the run that put it, and goes with that run. */
export class BlobStore {
  private readonly objects: ObjectStore;

  constructor(objects: ObjectStore) {
    this.objects = objects;
  }

  /** Where one run puts its blobs. `put` is idempotent and durable when it returns. */
  of(runId: string): RunBlobs {
    const put = async (bytes: Uint8Array): Promise<BlobRef> => {
      const digest = digestOf(bytes);
      await this.objects.put(keyOf({ runId, digest }), bytes);
      return `${runId}/sha256:${digest}` as BlobRef;
    };
    return { put };
  }

  /** @throws BlobMissing for an unknown ref, BlobCorrupt for bytes that were damaged */
  async get(ref: BlobRef): Promise<Uint8Array> {
    const address = addressIn(ref);
    const bytes = await this.objects.get(keyOf(address));
    if (bytes === null) throw new BlobMissing(ref);
    if (digestOf(bytes) !== address.digest) throw new BlobCorrupt(ref);
    return bytes;
  }

  async has(ref: BlobRef): Promise<boolean> {
    return this.objects.has(keyOf(addressIn(ref)));
  }
}

/** The run that a blob goes with. @throws BlobMissing for what is no ref */
export const runOfBlob = (ref: BlobRef): string => addressIn(ref).runId;

export type RunBlobs = { put(bytes: Uint8Array): Promise<BlobRef> };

type Address = { readonly runId: string; readonly digest: string };

const keyOf = ({ runId, digest }: Address) => `${placeOf(runId)}blobs/${digest.slice(0, 2)}/${digest}`;

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

function addressIn(ref: BlobRef): Address {
  const match = /^([^/]+)\/sha256:([0-9a-f]{64})$/.exec(ref);
  if (!match?.[1] || !match[2]) throw new BlobMissing(ref);
  return { runId: match[1], digest: match[2] };
}
