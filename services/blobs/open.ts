import type { StoreLocation } from '../settings/index.ts';
import { FileObjectStore } from './file-object-store.ts';
import type { ObjectStore } from './object-store.ts';
import { s3Client } from './s3-client.ts';
import { S3ObjectStore } from './s3-object-store.ts';

/**
 * Opens the store that the app settings name. A bucket is asked once whether it can be written and honours conditional writes.
 * @throws S3SettingsMissing, ObjectStoreUnusable, ConditionalWritesMissing
 */
export async function openObjectStore({ blobStore }: { readonly blobStore: StoreLocation }): Promise<ObjectStore> {
  if (blobStore.kind === 'folder') return new FileObjectStore(blobStore.path);
  const store = new S3ObjectStore(s3Client(blobStore), blobStore);
  await store.probe();
  return store;
}
