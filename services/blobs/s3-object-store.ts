import { randomUUID } from 'node:crypto';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  type S3Client,
} from '@aws-sdk/client-s3';
import { keyParts, type ObjectEntry, type ObjectKey, type ObjectStore, ObjectStoreUnusable, prefixParts } from './object-store.ts';

/** The server takes a write that must only create, and overwrites: two workers on it would undo each other's work. */
export class ConditionalWritesMissing extends Error {
  readonly exitCode = 2;
  override readonly name = 'ConditionalWritesMissing';
  constructor(place: string, what: string) {
    super(
      `${place} does not honour conditional writes (PutObject with If-None-Match: *): ${what}. Stillroom needs them so that of several workers exactly one makes an object; use a server or a version that has them`,
    );
  }
}

export type S3Place = { readonly bucket: string; readonly prefix: string };

/** How often a write that must only create is tried again after the server was busy with another one of the same key. */
const CONFLICT_TRIES = 10;
const CONFLICT_PAUSE_MS = 50;

/**
 * Objects in a bucket of S3 or of a server that speaks its protocol, for any number of machines. The library repeats what failed on the
 * way; a create that was repeated after its answer was lost is still told true, by a mark that each writer leaves on its object.
 */
export class S3ObjectStore implements ObjectStore {
  private readonly client: S3Client;
  private readonly bucket: string;
  /** Empty, or ending in a slash. */
  private readonly prefix: string;

  constructor(client: S3Client, { bucket, prefix }: S3Place) {
    this.client = client;
    this.bucket = bucket;
    this.prefix = prefix === '' ? '' : `${prefix}/`;
  }

  async get(key: ObjectKey): Promise<Uint8Array | null> {
    const found = await orNull(this.client.send(new GetObjectCommand(this.named(key))));
    return found === null ? null : ((await found.Body?.transformToByteArray()) ?? new Uint8Array());
  }

  async has(key: ObjectKey): Promise<boolean> {
    return (await this.head(key)) !== null;
  }

  async put(key: ObjectKey, bytes: Uint8Array): Promise<void> {
    await this.client.send(new PutObjectCommand({ ...this.named(key), Body: bytes }));
  }

  async create(key: ObjectKey, bytes: Uint8Array): Promise<boolean> {
    const writer = randomUUID();
    const command = () => new PutObjectCommand({ ...this.named(key), Body: bytes, IfNoneMatch: '*', Metadata: { writer } });
    for (let tries = 1; ; tries++) {
      try {
        await this.client.send(command());
        return true;
      } catch (error) {
        if (statusOf(error) === 412) return (await this.head(key))?.Metadata?.writer === writer;
        if (statusOf(error) !== 409 || tries === CONFLICT_TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, CONFLICT_PAUSE_MS * tries));
      }
    }
  }

  async delete(key: ObjectKey): Promise<void> {
    await this.client.send(new DeleteObjectCommand(this.named(key)));
  }

  async *list(prefix: string): AsyncIterable<ObjectEntry> {
    prefixParts(prefix);
    const pages = paginateListObjectsV2({ client: this.client }, { Bucket: this.bucket, Prefix: `${this.prefix}${prefix}` });
    for await (const { Contents: found = [] } of pages)
      for (const { Key, Size, LastModified } of found)
        if (Key !== undefined) yield { key: Key.slice(this.prefix.length), bytes: Size ?? 0, modifiedAtMs: LastModified?.getTime() ?? 0 };
  }

  /** Makes sure that the bucket is there and honours conditional writes. @throws ConditionalWritesMissing, ObjectStoreUnusable */
  async probe(): Promise<void> {
    const key = `probe/${randomUUID()}`;
    const place = `s3://${this.bucket}/${this.prefix}`;
    const conditional = (text: string) => this.create(key, new TextEncoder().encode(text));
    try {
      await conditional('first').catch((error: Error) => {
        if (statusOf(error) === 501) throw new ConditionalWritesMissing(place, 'it answers 501');
        const problem = `${error.name}: ${error.message}`;
        throw new ObjectStoreUnusable(
          `the blob store ${place} cannot be used (${problem}): see blobStore in temporal.config.json and the AWS_… variables`,
        );
      });
      if (await conditional('second')) throw new ConditionalWritesMissing(place, 'a second create of the same key overwrote the first');
    } finally {
      await this.delete(key).catch(() => {}); // the answer that counts is known by now
    }
  }

  private head(key: ObjectKey) {
    return orNull(this.client.send(new HeadObjectCommand(this.named(key))));
  }

  private named(key: ObjectKey) {
    return { Bucket: this.bucket, Key: `${this.prefix}${keyParts(key).join('/')}` };
  }
}

function statusOf(error: unknown): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}

/** Null for a key without an object; a bucket that is not there stays an error. */
async function orNull<T>(reading: Promise<T>): Promise<T | null> {
  return reading.catch((error: Error) => {
    if (statusOf(error) === 404 && error.name !== 'NoSuchBucket') return null;
    throw error;
  });
}
