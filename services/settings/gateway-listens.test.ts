import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { cannotListen } from './gateway-listens.ts';

const listen = async (port: number, host: string) => {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  return server;
};

it('a taken port is named with its setting; other faults say what the system said', async () => {
  const first = await listen(0, '127.0.0.1');
  const { port } = first.address() as AddressInfo;
  const failure = async (host: string) => cannotListen({ host, port }, await listen(port, host).catch((error) => error)).message;
  expect(await failure('127.0.0.1')).toMatch(`gateway.port ${port} on 127.0.0.1 is taken, by another worker perhaps: leave gateway.port`);
  expect(await failure('192.0.2.1')).toMatch(`gateway.host 192.0.2.1, gateway.port ${port}: listen EADDRNOTAVAIL`);
  first.close();
});
