import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePorts } from './ports.ts';
import type { Notice, ProcessSpec } from './spec.ts';
import { Supervisor } from './supervisor.ts';

let dir: string;
let notices: Notice[];
let supervisor: Supervisor;

beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'stillroom-supervisor-'));
  notices = [];
  supervisor = new Supervisor({ logDir: dir, onNotice: (notice) => notices.push(notice) });
});
afterEach(async () => {
  await supervisor.stop();
  rmSync(dir, { recursive: true });
});

/** A small program: says its pid, then stays. */
const program = (code: string, over: Partial<ProcessSpec> = {}): ProcessSpec => ({
  name: 'program',
  command: process.execPath,
  args: ['-e', code],
  ready: { kind: 'line', pattern: /^pid \d+$/ },
  readyTimeoutMs: 20_000,
  leash: 'wrapper',
  ...over,
});
const STAYS = "console.log('pid ' + process.pid); setInterval(() => {}, 1000)";

const lives = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const pidIn = (line: string) => Number(line.split(' ')[1]);

describe.each(['wrapper', 'self'] as const)('a process on the leash "%s"', (leash) => {
  it('is started, known by its own pid, and gone after stop', async () => {
    const kept = await supervisor.start(program(STAYS, { leash }));
    const pid = pidIn(kept.readyLine);
    expect(kept.pid).toBe(pid);
    expect(lives(pid)).toBe(true);
    await supervisor.stop();
    expect(lives(pid)).toBe(false);
    expect(notices).toEqual([]);
  });

  it('is started again after SIGKILL, with a notice for each half', async () => {
    const kept = await supervisor.start(program(STAYS, { leash }));
    const first = pidIn(kept.readyLine);
    process.kill(first, 'SIGKILL');
    await expect.poll(() => notices.map(({ kind }) => kind), { timeout: 20_000 }).toEqual(['died', 'restarted']);
    expect(kept.restarts).toBe(1);
    expect(pidIn(kept.readyLine)).not.toBe(first);
    expect(lives(pidIn(kept.readyLine))).toBe(true);
  });
});

it('takes along what a dead process had started, before its successor starts', async () => {
  const starter = "const c = require('child_process').spawn('sleep', ['1000']); console.log('pid ' + c.pid); setInterval(() => {}, 1000)";
  const kept = await supervisor.start(program(starter));
  const grandchild = pidIn(kept.readyLine);
  process.kill(kept.pid ?? 0, 'SIGKILL');
  await expect.poll(() => notices.length, { timeout: 20_000 }).toBe(2);
  expect(lives(grandchild)).toBe(false);
});

it('kills what does not heed SIGTERM, after the grace time', async () => {
  const kept = await supervisor.start(program(`process.on('SIGTERM', () => {}); ${STAYS}`, { stopGraceMs: 300 }));
  const pid = pidIn(kept.readyLine);
  const startedMs = performance.now();
  await supervisor.stop();
  expect(performance.now() - startedMs).toBeGreaterThan(290);
  expect(lives(pid)).toBe(false);
});

it('gives up on a process that never comes up, and shows its last words', async () => {
  const start = supervisor.start(program("console.error('no such setting: frobnicate'); process.exit(3)"));
  await expect(start).rejects.toThrow(/ended before it was ready \(exit code 3\)[\s\S]*no such setting: frobnicate[\s\S]*program\.log/);
  await expect(supervisor.start(program(STAYS, { name: 'missing', command: '/no/such/command' }))).rejects.toThrow(/cannot start/);
});

it('waits until a process accepts connections', async () => {
  const [port = 0] = await freePorts(1);
  const server = `setTimeout(() => require('net').createServer().listen(${port}, '127.0.0.1'), 400)`;
  const startedMs = performance.now();
  await supervisor.start(program(server, { ready: { kind: 'tcp', port } }));
  expect(performance.now() - startedMs).toBeGreaterThan(390);
});

it('keeps the output in the log file', async () => {
  const kept = await supervisor.start(program(`console.error('to stderr'); ${STAYS}`));
  await supervisor.stop();
  expect(readFileSync(kept.logFile, 'utf8')).toMatch(/program starts: [\s\S]*to stderr[\s\S]*program ended/);
});

it('leaves no process when it is killed itself', async () => {
  const module = (name: string) => JSON.stringify(path.join(import.meta.dirname, name));
  const child =
    "const c = require('child_process').spawn('sleep', ['1000']); console.log('pids ' + process.pid + ' ' + c.pid); setInterval(() => {}, 1000)";
  const own = `import { endWithParent } from ${module('parent-watch.ts')}; endWithParent(() => process.exit(0)); console.log('pids ' + process.pid); setInterval(() => {}, 1000);`;
  writeFileSync(path.join(dir, 'own.ts'), own);
  const owner = `
    import { Supervisor } from ${module('supervisor.ts')};
    const supervisor = new Supervisor({ logDir: ${JSON.stringify(dir)}, onNotice: () => {} });
    const common = { command: process.execPath, ready: { kind: 'line', pattern: /^pids/ }, readyTimeoutMs: 20_000 };
    const wrapped = await supervisor.start({ ...common, name: 'wrapped', args: ['-e', ${JSON.stringify(child)}], leash: 'wrapper' });
    const own = await supervisor.start({ ...common, name: 'own', args: [${JSON.stringify(path.join(dir, 'own.ts'))}], leash: 'self' });
    console.log(wrapped.readyLine + ' ' + own.readyLine);`;
  writeFileSync(path.join(dir, 'owner.ts'), owner);
  const parent = spawn(process.execPath, [path.join(dir, 'owner.ts')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve) => parent.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString())));
  const pids = line.match(/\d+/g)?.map(Number) ?? [];
  expect(pids).toHaveLength(3);
  expect(pids.every(lives)).toBe(true);

  parent.kill('SIGKILL');
  await expect.poll(() => pids.filter(lives), { timeout: 20_000 }).toEqual([]);
});
