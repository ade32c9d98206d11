import { request } from 'node:http';
import { zstdCompressSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { faultReports, on, putFaults } from '../support/faults.ts';
import { withFaultyTrainer } from '../support/faulty-trainer.ts';
import { KEY } from '../trainer-process.ts';

/** What stands before the fault plan as it does before the service. */

let url: string;
withFaultyTrainer((fixture) => {
  url = fixture.trainer.url;
});

const LIMIT_BYTES = 64 * 1024 * 1024;
const post = (path: string, body: string | Uint8Array<ArrayBuffer>, headers: Readonly<Record<string, string>>) =>
  fetch(`${url}${path}`, { method: 'POST', body, headers });

it('a request without a key meets no rule and is told so', async () => {
  await putFaults(url, on('*', { kind: 'status', status: 503 }, { times: 'always' }));
  for (const key of ['', 'sk-1']) {
    expect((await post('/api/v1/create_session', '{}', { 'x-api-key': key })).status).toBe(401);
    expect((await fetch(`${url}/faults`, { headers: { 'x-api-key': key } })).status).toBe(401);
  }
  expect(await faultReports(url)).toMatchObject([{ matched: 0, fired: 0 }]);
  expect((await post('/api/v1/create_session', '{}', { 'x-api-key': KEY })).status).toBe(503);
});

it('a compressed body that grows beyond all bounds is not unpacked', async () => {
  await putFaults(url, on('forward_backward', { kind: 'context_limit', tokens: 1 }));
  const bomb = new Uint8Array(zstdCompressSync(Buffer.alloc(4 * LIMIT_BYTES)));
  const headers = { 'x-api-key': KEY, 'content-type': 'application/x-protobuf', 'content-encoding': 'zstd' };
  const answer = await post('/api/v1/forward_backward', bomb, headers);
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(`at most ${LIMIT_BYTES} bytes`)]);
  expect(await faultReports(url)).toMatchObject([{ matched: 0 }]);
});

it.each([
  ['/api/v1/forward_backward', 'application/x-protobuf'],
  ['/api/v1/asample', 'application/json'],
  ['/faults', 'application/json'],
])('a body for %s that does not say how long it is is read up to 64 MB', async (path, type) => {
  const { status, body, sentBytes } = await sendWithoutEnd(path, type);
  expect([status, JSON.parse(body)]).toEqual([413, { detail: `the body exceeds ${LIMIT_BYTES} bytes` }]);
  expect(sentBytes).toBeGreaterThan(LIMIT_BYTES);
  expect(sentBytes).toBeLessThan(3 * LIMIT_BYTES);
});

it('a short body that does not say how long it is is taken', async () => {
  const body = new Blob(['{"tags": ["a"]}']).stream();
  const init = { method: 'POST', body, duplex: 'half', headers: { 'x-api-key': KEY, 'content-type': 'application/json' } } as const;
  const answer = await fetch(`${url}/api/v1/create_session`, init);
  expect([answer.status, await answer.json()]).toEqual([200, { type: 'create_session', session_id: expect.any(String) }]);
});

it('a body that says it is longer is not read at all', async () => {
  const answer = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { 'x-api-key': KEY, 'content-length': LIMIT_BYTES + 1 };
    const sending = request(`${url}/api/v1/asample`, { method: 'POST', headers }, (response) => {
      resolve(response.statusCode);
      sending.destroy();
    });
    sending.on('error', reject);
    sending.flushHeaders();
  });
  expect(answer).toBe(413);
});

/** Sends chunk after chunk until an answer is there. */
function sendWithoutEnd(path: string, type: string): Promise<{ status: number | undefined; body: string; sentBytes: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: string; sentBytes: number }>();
  const chunk = Buffer.alloc(1024 * 1024, 0x20);
  let sentBytes = 0;
  const method = path === '/faults' ? 'PUT' : 'POST';
  const sending = request(`${url}${path}`, { method, headers: { 'x-api-key': KEY, 'content-type': type } }, (response) => {
    let body = '';
    response.on('data', (part: Buffer) => {
      body += part.toString();
    });
    response.on('end', () => {
      resolve({ status: response.statusCode, body, sentBytes });
      sending.destroy();
    });
  });
  const send = (): void => {
    while (!sending.destroyed && sentBytes < 8 * LIMIT_BYTES) {
      sentBytes += chunk.length;
      if (!sending.write(chunk)) return void sending.once('drain', send);
    }
    sending.end();
  };
  sending.on('error', reject);
  send();
  return promise;
}
