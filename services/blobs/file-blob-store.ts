import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BlobRef } from '../../core/ids.ts';
import type { BlobStore } from './blob-store.ts';

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
    super(`blob ${ref} does not match its address: the file was damaged; restore it from a copy`);
  }
}

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/**
 * Blobs as files below `root`, named by the sha256 of their bytes.
 * A blob is written beside its place, flushed and renamed, so that a reader or a crash never meets half of one.
 */
export class FileBlobStore implements BlobStore {
  private readonly root: string;
  private readonly madeDirectories = new Set<string>();

  constructor(root: string) {
    this.root = root;
  }

  async put(bytes: Uint8Array): Promise<BlobRef> {
    const digest = digestOf(bytes);
    const ref = `sha256:${digest}` as BlobRef;
    const path = this.pathOf(digest);
    if ((await sizeOf(path)) === bytes.length) return ref; // another size is a damaged file, which is replaced
    await this.makeDirectory(dirname(path));
    try {
      await writeWhole(path, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.madeDirectories.clear(); // somebody removed the folder under us
      await this.makeDirectory(dirname(path));
      await writeWhole(path, bytes);
    }
    return ref;
  }

  async get(ref: BlobRef): Promise<Uint8Array> {
    const digest = digestIn(ref);
    const bytes = await readFile(this.pathOf(digest)).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? new BlobMissing(ref) : error;
    });
    if (digestOf(bytes) !== digest) throw new BlobCorrupt(ref);
    return bytes;
  }

  async has(ref: BlobRef): Promise<boolean> {
    return exists(this.pathOf(digestIn(ref)));
  }

  private pathOf(digest: string): string {
    return join(this.root, digest.slice(0, 2), digest);
  }

  private async makeDirectory(path: string): Promise<void> {
    if (this.madeDirectories.has(path)) return;
    await mkdir(path, { recursive: true });
    this.madeDirectories.add(path);
  }
}

async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const partial = `${path}.${randomUUID()}.partial`;
  try {
    const file = await open(partial, 'wx');
    try {
      await file.writeFile(bytes);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

function digestIn(ref: BlobRef): string {
  const match = /^sha256:([0-9a-f]{64})$/.exec(ref);
  if (!match?.[1]) throw new BlobMissing(ref);
  return match[1];
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const sizeOf = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => null,
  );
