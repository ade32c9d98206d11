import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { TrialId } from '../../core/ids.ts';
import { startGateway } from './index.ts';
import { tinyAsciiRenderer } from './renderers/tiny-ascii.ts';
import { ask, failure, gatewayFixture } from './testing/gateway-fixture.ts';
import { says, scriptedSampler } from './testing/scripted-sampler.ts';

const { url, open, post } = gatewayFixture();
const port = () => Number(new URL(url()).port);

/** A reverse proxy as a person would put before a worker: it serves a path, and passes it on or leaves it out. */
async function reverseProxy(to: () => string, servedPath: string, leavesOut: boolean) {
  const server = createServer((incoming, outgoing) => {
    const path = leavesOut ? (incoming.url ?? '').slice(servedPath.length) : (incoming.url ?? '');
    const onward = request(to() + path, { method: incoming.method, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${servedPath}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe('behind a reverse proxy', () => {
  it.each([
    ['that passes its path on', '/worker-7', false],
    ['that leaves its path out', '/worker-7', true],
    ['without a path', '', false],
  ])('%s, agents reach the trial at the public URL, streams included', async (_, path, leavesOut) => {
    let inner = '';
    await using proxy = await reverseProxy(() => inner, path, leavesOut);
    await using gateway = await startGateway({ host: '127.0.0.1', port: 0, publicUrl: proxy.url });
    inner = `http://127.0.0.1:${gateway.port}`;
    const options = { modelName: 'm', renderer: tinyAsciiRenderer(), contextLimitTokens: 64, maxTokensPerCall: 16, temperature: 1 };
    await using session = gateway.open({ ...options, sampler: scriptedSampler(says('ls\n')), trialId: 'a/b' as TrialId });
    expect(session.apiBase).toBe(`${proxy.url}/t/a%2Fb/v1`);
    expect(await (await post(session, ask)).json()).toMatchObject({ choices: [{ message: { content: 'ls' } }] });
    expect(await (await post(session, { ...ask, stream: true })).text()).toMatch(/"content":"ls".*data: \[DONE\]/s);
    expect((await fetch(`${session.apiBase}/models`, { headers: { authorization: `Bearer ${session.apiKey}` } })).status).toBe(200);
    expect((await post(session, ask, { key: 'sr-wrong' })).status).toBe(401);
  });
});

describe('to strangers', () => {
  it.each([
    ['GET', '/'],
    ['GET', '/v1/models'],
    ['GET', '/metrics'],
    ['GET', '/t/'],
    ['POST', '/v1/chat/completions'],
    ['DELETE', '/t/x/v1/models'],
    ['HEAD', '/favicon.ico'],
  ])('there is nothing at %s %s', async (method, path) => {
    const response = await fetch(url() + path, { method });
    expect(response.status).toBe(404);
    if (method !== 'HEAD') expect(await failure(response)).toMatchObject({ code: 'not_found' });
  });

  it('completions that are no chat are not offered, with the right address in the answer', async () => {
    await using session = open(scriptedSampler());
    const told = await failure(await fetch(`${session.apiBase}/completions`, { method: 'POST', body: '{}' }));
    expect(told).toMatchObject({ status: 404, code: 'not_found', message: expect.stringContaining('/v1/chat/completions') });
  });

  it('a wrong key is refused before the body is there', async () => {
    await using session = open(scriptedSampler());
    const socket = connect(port(), '127.0.0.1');
    const path = new URL(session.apiBase).pathname;
    socket.write(`POST ${path}/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sr-no\r\ncontent-length: 4000\r\n\r\n{`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 401 /);
    await once(socket, 'close'); // what would still come is not waited for
  });

  it('connections beyond the limit are closed', async () => {
    await using gateway = await startGateway({ host: '127.0.0.1', port: 0, maxConnections: 1 });
    const first = connect(gateway.port, '127.0.0.1');
    await once(first, 'connect');
    await expect(fetch(gateway.url)).rejects.toThrow();
    first.destroy();
    await expect
      .poll(() =>
        fetch(gateway.url).then(
          ({ status }) => status,
          () => 'refused',
        ),
      )
      .toBe(404);
  });

  it('whoever sends a request slowly is cut off', async () => {
    await using gateway = await startGateway({ host: '127.0.0.1', port: 0, slowRequestMs: 150 });
    const socket = connect(gateway.port, '127.0.0.1');
    socket.write('POST /t/x/v1/chat/completions HTTP/1.1\r\nhost: x\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 408 /);
  });
});
