import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { TinkerClient, type WaitReport } from '../index.ts';
import { inPlainWords } from './plain-words.ts';

/** The report of the first wait for a service that does this with connections. */
async function firstWait(accept: (socket: Socket) => void, options: { isDown?: boolean } = {}): Promise<WaitReport & { host: string }> {
  const server = createServer((socket) => accept(socket.on('error', () => {}).resume()));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => new Promise((closed) => server.close(closed));
  if (options.isDown) await close();
  const waits: WaitReport[] = [];
  const settings = { baseUrl: `http://${host}`, apiKey: 'tml-key', noProgressMs: 1_000, requestTimeoutMs: 50 };
  await TinkerClient.connect({ ...settings, onWait: (report) => void waits.push(report) }).catch(() => {});
  if (!options.isDown) await close();
  const [first] = waits;
  if (first === undefined) throw new Error('there was no wait');
  return { ...first, host };
}

test('a service that is not up', async () => {
  const { reason, host, status, nextTryMs } = await firstWait(() => {}, { isDown: true });
  expect([reason, status]).toEqual([`connection refused: ${host}`, null]);
  expect(nextTryMs).toBeGreaterThan(0);
});

test('a service that hangs up', async () => {
  expect((await firstWait((socket) => socket.destroy())).reason).toBe('connection closed');
});

test('a service that says nothing', async () => {
  expect((await firstWait(() => {})).reason).toBe('no answer in time');
}, 20_000);

test('what has no words here keeps its own', () => {
  expect(inPlainWords(new Error('odd'), 'h')).toBe('odd');
  expect(inPlainWords(Object.assign(new Error(''), { code: 'EODD' }), 'h')).toBe('EODD');
  expect(inPlainWords(Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' }), 'h')).toBe('connection refused: h');
});
