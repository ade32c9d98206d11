import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SEARCH_ATTRIBUTES } from '../../workflows/search-attributes.ts';
import { readEnvironment } from '../settings/environment.ts';
import { freePorts, isFree } from './ports.ts';
import { Supervisor } from './supervisor.ts';
import { devServer } from './temporal-server.ts';

const { temporal: cli } = readEnvironment();
let dir: string;
const notices: string[] = [];
let supervisor: Supervisor;
let ports: number[];

beforeAll(async () => {
  dir = mkdtempSync(path.join(tmpdir(), 'stillroom-temporal-'));
  supervisor = new Supervisor({ logDir: dir, onNotice: ({ kind }) => notices.push(kind) });
  ports = await freePorts(4);
});
afterAll(async () => {
  await supervisor.stop();
  rmSync(dir, { recursive: true });
});

const temporal = async (...args: string[]): Promise<unknown> => {
  const { stdout } = await promisify(execFile)(cli, [...args, '--address', `127.0.0.1:${ports[0]}`, '-o', 'json']);
  return JSON.parse(stdout);
};

it('serves with our search attributes, comes back after SIGKILL with its data, and frees its ports when stopped', async () => {
  const [port = 0, uiPort = 0, httpPort = 0, metricsPort = 0] = ports;
  const server = await supervisor.start(
    devServer({
      cli,
      port,
      uiPort,
      httpPort,
      metricsPort,
      dbFile: path.join(dir, 'temporal.db'),
      searchAttributes: Object.values(SEARCH_ATTRIBUTES),
    }),
  );
  expect(await temporal('operator', 'search-attribute', 'list')).toMatchObject({
    customAttributes: {
      StillroomPhase: 'INDEXED_VALUE_TYPE_KEYWORD',
      StillroomWaitingFor: 'INDEXED_VALUE_TYPE_KEYWORD',
      StillroomStudent: 'INDEXED_VALUE_TYPE_KEYWORD',
      StillroomTeacher: 'INDEXED_VALUE_TYPE_KEYWORD',
      StillroomStep: 'INDEXED_VALUE_TYPE_INT',
      StillroomSolveRate: 'INDEXED_VALUE_TYPE_DOUBLE',
      StillroomSpentUsd: 'INDEXED_VALUE_TYPE_DOUBLE',
    },
  });
  expect((await fetch(`http://127.0.0.1:${uiPort}/`)).ok).toBe(true);
  await temporal('workflow', 'start', '--type', 'waits', '--task-queue', 'nobody', '--workflow-id', 'kept');

  process.kill(server.pid ?? 0, 'SIGKILL');
  await expect.poll(() => notices, { timeout: 50_000 }).toEqual(['died', 'restarted']);
  expect(await temporal('workflow', 'describe', '-w', 'kept')).toMatchObject({
    workflowExecutionInfo: { status: 'WORKFLOW_EXECUTION_STATUS_RUNNING' },
  });

  await supervisor.stop();
  expect(await Promise.all(ports.map(isFree))).toEqual([true, true, true, true]);
});
