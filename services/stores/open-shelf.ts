import { join } from 'node:path';
import type { ObjectStore } from '../blobs/object-store.ts';
import type { StoreLocation } from '../settings/index.ts';
import { FolderShelf } from './folder-shelf.ts';
import { ObjectShelf } from './object-shelf.ts';
import type { VersionShelf } from './version-shelf.ts';

/** A project's shelves, by the names of their folders. */
export type ShelfName = 'adapters' | 'harnesses';

/** The shelf of a project: in its state folder for one machine, in the bucket where the blob store is one that machines share. */
export function openShelf(name: ShelfName, stateDir: string, blobStore: StoreLocation, objects: ObjectStore): VersionShelf {
  if (blobStore.kind === 'folder') return new FolderShelf(join(stateDir, name));
  const { bucket, prefix } = blobStore;
  return new ObjectShelf(objects, name, `s3://${bucket}/${prefix === '' ? '' : `${prefix}/`}`);
}
