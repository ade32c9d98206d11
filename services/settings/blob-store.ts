import path from 'node:path';

/** The blob store as used: a folder of this machine, or a bucket that machines share. */
export type StoreLocation =
  | { readonly kind: 'folder'; readonly path: string }
  | {
      readonly kind: 's3';
      readonly bucket: string;
      /** Without slashes at its ends; empty for the whole bucket. */
      readonly prefix: string;
      /** Null is AWS's own, or what the standard variables name. */
      readonly endpoint: string | null;
      readonly region: string | null;
    };

type Written = {
  readonly blobStore: string;
  readonly blobStoreEndpoint: string | undefined;
  readonly blobStoreRegion: string | undefined;
};

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:\//;
const BUCKET = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._:@-]+)*)\/?$/;

export const isBucket = (blobStore: string): boolean => BUCKET.test(blobStore);

/** What looks like an address must be one that we know: it would otherwise be made as a folder. */
export const isFolderOrBucket = (blobStore: string): boolean => isBucket(blobStore) || !SCHEME.test(blobStore);

export function storeLocation(root: string, { blobStore, blobStoreEndpoint, blobStoreRegion }: Written): StoreLocation {
  const [, bucket, prefix = ''] = BUCKET.exec(blobStore) ?? [];
  if (bucket === undefined) return { kind: 'folder', path: path.resolve(root, blobStore) };
  return { kind: 's3', bucket, prefix: prefix.slice(1), endpoint: blobStoreEndpoint ?? null, region: blobStoreRegion ?? null };
}
