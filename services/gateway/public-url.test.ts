import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { otherThanGateway, startGateway } from './index.ts';

const never = new AbortController().signal;

/** A server that answers everything in one way, or not at all. */
async function other(status: number | null, body = '') {
  const server = createServer((_, answer) => {
    if (status !== null) answer.writeHead(status, { location: '/elsewhere' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

it('a gateway is known by its answer, below a path too', async () => {
  await using gateway = await startGateway({ host: '127.0.0.1', port: 0, publicUrl: 'http://gw.test/worker-7/' });
  expect(gateway.publicUrl).toBe('http://gw.test/worker-7');
  expect(await otherThanGateway(`http://127.0.0.1:${gateway.port}/worker-7`, never)).toBeNull();
  expect(await otherThanGateway(`http://127.0.0.1:${gateway.port}/worker-8`, never)).toMatch(
    /answered HTTP 404: .*There is no GET \/worker-8\//,
  );
});

it.each([
  ['a proxy with nothing behind it', 502, 'bad gateway', 'HTTP 502: bad gateway'],
  ["another server's 404", 404, '<h1>no such page</h1>', 'HTTP 404: <h1>no such page</h1>'],
  ['our body with another status', 200, '{"error":{"code":"unknown_trial"}}', 'HTTP 200: {"error"'],
  ['a redirect', 308, '', 'HTTP 308: (nothing)'],
])('%s is no gateway', async (_, status, body, told) => {
  await using server = await other(status, body);
  expect(await otherThanGateway(server.url, never)).toContain(`GET ${server.url}/t/none/v1/models answered ${told}`);
});

it('nobody there, and no answer', async () => {
  const gone = await other(200);
  await gone[Symbol.asyncDispose]();
  expect(await otherThanGateway(gone.url, never)).toContain('ECONNREFUSED');
  await using silent = await other(null);
  expect(await otherThanGateway(silent.url, never, 50)).toContain('no answer in 50 ms');
  await expect(otherThanGateway(silent.url, AbortSignal.timeout(50))).rejects.toThrow();
});
