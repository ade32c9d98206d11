import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { S3_ENV, type S3Server, startS3Server } from '../../test/support/s3/server.ts';
import type { StoreLocation } from '../settings/index.ts';
import { listed } from './object-store.ts';
import { openObjectStore } from './open.ts';
import { S3SettingsMissing, s3Client } from './s3-client.ts';
import { S3ObjectStore } from './s3-object-store.ts';

const BUCKET = 'lab';
let server: S3Server;
beforeAll(async () => {
  server = await startS3Server(BUCKET);
  Object.assign(process.env, S3_ENV);
});
afterAll(() => server?.[Symbol.asyncDispose]());

const bytes = (text: string) => new TextEncoder().encode(text);
const at = (endpoint: string, bucket = BUCKET): StoreLocation => ({ kind: 's3', bucket, prefix: 'p', endpoint, region: null });

type Answer = { readonly request: IncomingMessage; readonly response: ServerResponse; readonly passOn: () => Promise<void> };

/** Something between client and server that may answer, pass on, or cut the connection. */
async function between(handle: (answer: Answer) => Promise<void>): Promise<{ endpoint: string; middle: Server }> {
  const middle = createServer(async (incoming, response) => {
    const body: Buffer[] = [];
    for await (const part of incoming) body.push(part as Buffer);
    const passOn = () =>
      new Promise<void>((resolve, reject) => {
        const { method, url, headers } = incoming;
        const onward = request(`${server.endpoint}${url}`, { method: method ?? 'GET', headers }, (answered) => {
          response.writeHead(answered.statusCode ?? 500, answered.headers);
          answered.pipe(response, { end: false });
          answered.on('end', resolve);
        });
        onward.on('error', reject);
        onward.end(Buffer.concat(body));
      });
    await handle({ request: incoming, response, passOn });
    response.end();
  });
  await new Promise<void>((resolve) => middle.listen(0, '127.0.0.1', resolve));
  return { endpoint: `http://127.0.0.1:${(middle.address() as AddressInfo).port}`, middle };
}

/** The store behind it, unprobed; the signature is made for the server itself. */
const storeAt = (endpoint: string) => new S3ObjectStore(s3Client({ endpoint, region: null }), { bucket: BUCKET, prefix: 'p' });

it('a create whose answer is lost is told true all the same, and later ones false', async () => {
  let lost = 0;
  const { endpoint, middle } = await between(async ({ request, response, passOn }) => {
    const held = { writeHead: response.writeHead };
    if (request.method === 'PUT' && lost++ === 0) {
      response.writeHead = (() => response) as typeof held.writeHead;
      await passOn();
      response.destroy();
    } else await passOn();
  });
  const store = storeAt(endpoint);
  expect(await store.create('once', bytes('mine'))).toBe(true);
  expect(lost).toBeGreaterThan(1);
  expect(await store.create('once', bytes('mine'))).toBe(false);
  middle.close();
});

it('a create that meets another one in progress is tried again', async () => {
  let conflicts = 0;
  const { endpoint, middle } = await between(async ({ request, response, passOn }) => {
    if (request.method !== 'PUT' || conflicts === 2) return passOn();
    conflicts++;
    response.writeHead(409).end('<Error><Code>ConditionalRequestConflict</Code><Message>busy</Message></Error>');
  });
  expect(await storeAt(endpoint).create('busy', bytes('x'))).toBe(true);
  expect(conflicts).toBe(2);
  middle.close();
});

it('a server that ignores conditions is refused before anything is written to it', async () => {
  await using old = await startS3Server(BUCKET, { conditionalWrites: false });
  await expect(openObjectStore({ blobStore: at(old.endpoint) })).rejects.toMatchObject({
    name: 'ConditionalWritesMissing',
    exitCode: 2,
    message: expect.stringMatching(/^s3:\/\/lab\/p\/ does not honour conditional writes .*overwrote the first/),
  });
  expect(await listed(storeAt(old.endpoint), '')).toEqual([]);
});

it('a server that refuses conditions is refused too', async () => {
  const { endpoint, middle } = await between(async ({ request, response, passOn }) => {
    if (request.method === 'PUT') response.writeHead(501).end('<Error><Code>NotImplemented</Code></Error>');
    else await passOn();
  });
  await expect(openObjectStore({ blobStore: at(endpoint) })).rejects.toMatchObject({ name: 'ConditionalWritesMissing' });
  middle.close();
});

it('a bucket that is not there is an error, not an empty store', async () => {
  const missing = new S3ObjectStore(s3Client({ endpoint: server.endpoint, region: null }), { bucket: 'other', prefix: '' });
  await expect(missing.get('a')).rejects.toMatchObject({ name: 'NoSuchBucket' });
  await expect(openObjectStore({ blobStore: at(server.endpoint, 'other') })).rejects.toMatchObject({
    name: 'ObjectStoreUnusable',
    message: expect.stringMatching(/^the blob store s3:\/\/other\/p\/ cannot be used \(NoSuchBucket/),
  });
});

it('bytes that were damaged on the way are not given out', async () => {
  const { endpoint, middle } = await between(async ({ request, response, passOn }) => {
    if (request.method !== 'GET') return passOn();
    response.writeHead(200, { 'content-length': '3', 'x-amz-checksum-crc32': 'AAAAAA==' }).write('abc');
  });
  await expect(storeAt(endpoint).get('x')).rejects.toThrow(/checksum/i);
  middle.close();
});

const OWN = { endpoint: 'http://127.0.0.1:1', region: null };
const AWS = { endpoint: null, region: null };

it.each([
  ['no region', AWS, S3_ENV, /nothing says in which region: set blobStoreRegion/],
  ['a password in the address', AWS, { ...S3_ENV, AWS_ENDPOINT_URL: 'http://me:secret@127.0.0.1:1' }, /^(?!.*secret@).*user or password/],
  ['no credentials', OWN, {}, /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/],
  ['half a pair', OWN, { AWS_ACCESS_KEY_ID: 'a', AWS_WEB_IDENTITY_TOKEN_FILE: 'f' }, /AWS_SECRET_ACCESS_KEY/],
])('with %s it says what to set', (_, place, variables, message) => {
  expect(() => s3Client(place, variables)).toThrow(message);
  expect(() => s3Client(place, variables)).toThrow(S3SettingsMissing);
});

it('keys, region and endpoint come from the standard variables where the settings name none', async () => {
  const variables = { ...S3_ENV, AWS_SESSION_TOKEN: 't', AWS_DEFAULT_REGION: 'eu-west-1', AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9' };
  const { config } = s3Client(AWS, variables);
  expect(await config.credentials()).toMatchObject({ accessKeyId: S3_ENV.AWS_ACCESS_KEY_ID, sessionToken: 't' });
  expect(await config.region()).toBe('eu-west-1');
  expect(await config.endpoint?.()).toMatchObject({ hostname: '127.0.0.1', port: 9 });
  expect(config.forcePathStyle).toBe(true);
  expect(await s3Client({ ...AWS, region: 'us-west-2' }, variables).config.region()).toBe('us-west-2');
});
