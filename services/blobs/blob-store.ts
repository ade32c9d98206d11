import type { BlobRef } from '../../core/ids.ts';

/** Content-addressed bytes. `put` is idempotent and durable when it returns; `get` fails with `BlobMissing` on an unknown ref. */
export interface BlobStore {
  put(bytes: Uint8Array): Promise<BlobRef>;
  get(ref: BlobRef): Promise<Uint8Array>;
  has(ref: BlobRef): Promise<boolean>;
}
