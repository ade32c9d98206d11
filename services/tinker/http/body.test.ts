import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { TinkerClient } from '../index.ts';
import { BodyTooLarge, BodyTooSlow, readBody } from './body.ts';

const LIMITS = { totalMs: 1000, maxBytes: 10 };
const of = (...parts: string[]) => Readable.from(parts.map((part) => Buffer.from(part)));

describe('a body', () => {
  test.each([[[]], [['a']], [['0123', '456789']]])('of the parts %j', async (parts) => {
    expect(Buffer.from(await readBody(of(...parts), null, LIMITS)).toString()).toBe(parts.join(''));
  });

  test('that is too large as it says itself is not read', async () => {
    const body = of('a');
    await expect(readBody(body, 11, LIMITS)).rejects.toThrow(BodyTooLarge);
    expect(body.destroyed).toBe(true);
  });

  test('that is too large without saying so is broken off', async () => {
    const body = of('01234', '56789', 'a', 'never read');
    await expect(readBody(body, null, LIMITS)).rejects.toThrow('more than the 10 bytes');
    expect(body.destroyed).toBe(true);
  });

  test('that drips', async () => {
    const body = new Readable({ read: () => {} });
    const dripping = setInterval(() => body.push(' '), 20);
    await expect(readBody(body, null, { totalMs: 100, maxBytes: 1000 })).rejects.toThrow(BodyTooSlow);
    clearInterval(dripping);
  });
});

/** A service whose answers to retrieve_future are this, and whose others are enough to get there. */
async function serving(retrieve: (response: ServerResponse, poll: number) => void) {
  let polls = 0;
  const server = createServer((request, response) => {
    request.resume();
    if (request.url?.endsWith('/retrieve_future')) return retrieve(response, polls++);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ session_id: 's', request_id: 'the-step' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url, [Symbol.dispose]: stop };
}

describe('a result', () => {
  test('of more than a gigabyte is refused, as unknown to a step', async () => {
    using service = await serving((response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(2 ** 30 + 1) });
      response.write('{');
    });
    await using client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
    const step = client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
    await expect(step).rejects.toMatchObject({
      name: 'TrainingStateUnknown',
      requestId: 'the-step',
      message: expect.stringContaining('more than the 1073741824 bytes'),
    });
  });

  test('that drips is asked for again', async () => {
    using service = await serving((response, poll) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      if (poll > 0) return response.end('{"metrics": {"step:max": 1}}');
      const dripping = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(dripping));
    });
    await using client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', requestTimeoutMs: 100 });
    const step = client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
    expect(await step).toEqual({ metrics: { 'step:max': 1 } });
  });
});
