import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaNode } from 'execa';
import pc from 'picocolors';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Finding } from '../client/doctor/finding.ts';
import { doctorText } from '../client/view/doctor-text.ts';
import { type HarborReport, harborPython, probeHarbor, TEMPLATE_KEYS } from '../services/harbor/index.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import { PLUGIN_DIR, SANDBOX_MODE } from './harbor/setting.ts';

const KEY = 'e2b_0123456789abcdef';
const DEAD = 'tcp://127.0.0.1:1';

let dir: string;
let harbor: HarborReport;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stillroom-doctor-'));
  harbor = await probeHarbor({ python: await harborPython(PROJECT_ROOT), pluginDir: PLUGIN_DIR, home: join(dir, 'home') });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const doctor = (args: string[], env: Record<string, string> = {}) =>
  execaNode(join(PROJECT_ROOT, 'client/cli.ts'), ['doctor', ...args], {
    cwd: PROJECT_ROOT,
    reject: false,
    // A service that nobody named is not needed, so that the answer is about this machine.
    env: { TEMPORAL_ADDRESS: undefined, TINKER_BASE_URL: undefined, DOCKER_HOST: DEAD, E2B_API_KEY: KEY, ...env },
  });

async function template(environment: object): Promise<string> {
  const file = join(dir, `job-${Object.values(environment).join('-').replace(/\W/g, '')}.json`);
  await writeFile(file, JSON.stringify({ environment, datasets: [{ path: 'tasks' }] }));
  return file;
}

test('a job template may hold exactly the keys that the installed harbor knows', () => {
  expect(TEMPLATE_KEYS.environment.toSorted()).toEqual(harbor.keys.environment);
  expect(TEMPLATE_KEYS.verifier.toSorted()).toEqual(harbor.keys.verifier);
});

test.concurrent('tells of every environment that the installed harbor has, with what to do, in 80 columns, and never a key', async () => {
  const { stdout, stderr, exitCode } = await doctor(['--json']);
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  const text = doctorText(findings, pc.createColors(false));
  const names = findings.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['harbor', 'process (bwrap)', 'process (plain)', 'tmux', 'git', 'Temporal', ...harbor.names]),
  );
  expect(harbor.names.length).toBeGreaterThan(30);
  expect(findings.filter(({ state, remedy }) => state === 'missing' && !remedy)).toEqual([]);
  const sandbox = findings.find(({ name }) => name === `process (${SANDBOX_MODE})`);
  expect([ok, exitCode]).toEqual(sandbox?.state === 'missing' ? [false, 2] : [true, 0]);
  expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
  expect(text).toMatch(/docker +client .*|docker +no docker/);
  expect(text + stdout + stderr).not.toContain(KEY);
}, 90_000);

test.concurrent('of a job template tells just what its trials need, and fails by name where that is missing', async () => {
  const other = await doctor(['--json', '--job-template', await template({ type: 'docker' })]);
  expect(other.exitCode).toBe(2);
  const { findings } = JSON.parse(other.stdout);
  expect(findings.filter(({ needed }: { needed: boolean }) => needed).map(({ name }: { name: string }) => name)).toEqual([
    'harbor',
    'docker',
  ]);
  const [ours, wrong, unknown] = await Promise.all([
    doctor([
      '--job-template',
      await template({ import_path: 'stillroom_harbor.environment:ProcessEnvironment', kwargs: { mode: 'plain' } }),
    ]),
    doctor(['--job-template', await template({ type: 'docker', typo: 1 })]),
    doctor(['--job-template', await template({ type: 'no-such-thing' })]),
  ]);
  expect([ours.exitCode, ours.stdout]).toEqual([0, expect.stringContaining('process (plain)')]);
  expect(ours.stdout).not.toContain('docker');
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('typo')]);
  expect([unknown.exitCode, unknown.stdout]).toEqual([2, expect.stringContaining("'no-such-thing' is not a valid EnvironmentType")]);
}, 90_000);

test.concurrent('does not wait for an engine that hangs', async () => {
  const bin = join(dir, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'docker'), '#!/bin/sh\n[ "$1" = --version ] && { echo Docker version 1.2.3; exit 0; }\nexec sleep 300\n', {
    mode: 0o755,
  });
  const began = Date.now();
  const run = await doctor(['--job-template', await template({ type: 'docker', delete: true })], { PATH: `${bin}:${process.env.PATH}` });
  expect(run.exitCode).toBe(2);
  expect(run.stdout).toMatch(/docker/);
  expect(Date.now() - began).toBeLessThan(60_000); // the engine would take 300 s
}, 90_000);
