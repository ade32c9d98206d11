import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Link } from '../connection.ts';
import { CurrentRun } from './current-run.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'current-run-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A server that knows runs by id and their state. */
function server(states: Readonly<Record<string, string>>): Link {
  const describe = async (id: string) => {
    const name = states[id];
    if (name === undefined) throw new WorkflowNotFoundError('workflow not found', id, undefined);
    return { status: { name }, startTime: new Date(0), closeTime: undefined, raw: {} };
  };
  const workflow = { getHandle: (id: string) => ({ describe: () => describe(id) }) };
  const client = { workflow, withDeadline: (_: number, ask: () => unknown) => ask() } as unknown as Client;
  return { client, address: 'here', namespace: 'default', close: async () => {} };
}

test.each<[name: string, states: Record<string, string>, runId: string | undefined]>([
  ['a run that was interrupted is gone on with', { d1: 'RUNNING' }, 'd1'],
  ['a run that ended is not', { d1: 'COMPLETED' }, undefined],
  ['a run that failed is not', { d1: 'FAILED' }, undefined],
  ['a run that the server does not know is not', {}, undefined],
])('%s', async (_, states, runId) => {
  const current = new CurrentRun(dir);
  current.remember('d1');
  expect((await current.open(server(states)))?.runId).toBe(runId);
});

test.each(['', '{"runId":', '{"id": "d1"}'])('a record that says nothing (%j) is no run', async (text) => {
  writeFileSync(join(dir, 'demo.json'), text);
  expect(await new CurrentRun(dir).open(server({ d1: 'RUNNING' }))).toBeNull();
});

test('without a record there is no run', async () => {
  expect(await new CurrentRun(dir).open(server({ d1: 'RUNNING' }))).toBeNull();
});
