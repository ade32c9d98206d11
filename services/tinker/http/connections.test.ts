import { Agent } from 'undici';
import { expect, test } from 'vitest';
import { Connections } from './connections.ts';

test('requests that failed together renew the connections once', async () => {
  const connections = new Connections();
  const failing = connections.dispatcher;
  connections.renew(failing);
  const fresh = connections.dispatcher;
  expect(fresh).not.toBe(failing);
  connections.renew(failing);
  expect(connections.dispatcher).toBe(fresh);
  await connections.destroy();
});

test('a given dispatcher is neither replaced nor closed', async () => {
  const given = new Agent();
  const connections = new Connections(given);
  connections.renew(given);
  expect(connections.dispatcher).toBe(given);
  await connections.destroy();
  expect(given.closed || given.destroyed).toBe(false);
  await given.destroy();
});
