import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { freePorts, isFree, LOOPBACK, PortBusy, requireFreePort } from './ports.ts';

const listening = async (host: string) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ port: 0, host }, resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { port, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())) };
};

it.each([LOOPBACK, '0.0.0.0'])('a port with a listener on %s is busy, and the error says what to do', async (host) => {
  await using server = await listening(host);
  const refused = requireFreePort(server.port, 'Temporal', '--port');
  await expect(refused).rejects.toBeInstanceOf(PortBusy);
  await expect(refused).rejects.toMatchObject({ exitCode: 2, port: server.port });
  await expect(refused).rejects.toThrow(new RegExp(`port ${server.port} \\(Temporal\\) is in use.*--port PORT`));
});

it('a port is free again as soon as its listener is gone', async () => {
  const server = await listening(LOOPBACK);
  await server[Symbol.asyncDispose]();
  expect(await isFree(server.port)).toBe(true);
});

it('free ports are different and free', async () => {
  const ports = await freePorts(5);
  expect(new Set(ports).size).toBe(5);
  expect(await Promise.all(ports.map(isFree))).toEqual([true, true, true, true, true]);
});
