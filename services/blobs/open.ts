import type { StoreLocation } from '../settings/index.ts';
import { FileObjectStore } from './file-object-store.ts';
import type { ObjectStore } from './object-store.ts';
import { s3Client } from './s3-client.ts';
import { S3ObjectStore } from './s3-object-store.ts';

/**
 * Opens the store that the app settings name. It is asked once whether it can be written, and a bucket whether it honours conditional writes.
 * @throws S3SettingsMissing, ObjectStoreUnusable, ConditionalWritesMissing
 */
export async function openObjectStore({ blobStore }: { readonly blobStore: StoreLocation }): Promise<ObjectStore> {
  const store = blobStore.kind === 'folder' ? new FileObjectStore(blobStore.path) : new S3ObjectStore(s3Client(blobStore), blobStore);
  await store.probe();
  return store;
}
