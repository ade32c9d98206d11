import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaNode } from 'execa';
import getPort from 'get-port';
import { afterEach, beforeEach, expect, it } from 'vitest';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'cli-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const CLI = join(import.meta.dirname, 'cli.ts');
const stillroom = (args: readonly string[], env: Record<string, string> = {}) =>
  execaNode(CLI, args, { env, reject: false, timeout: 30_000 });

async function upWith(state: string) {
  const [port, uiPort, trainerPort] = await Promise.all([getPort(), getPort(), getPort()]);
  return ['up', '--state', state, '--port', `${port}`, '--ui-port', `${uiPort}`, '--trainer-port', `${trainerPort}`];
}

it('a state folder that is a file is one message, exit code 2 and no stack', async () => {
  const file = join(dir, 'file');
  writeFileSync(file, '');
  const { exitCode, stderr } = await stillroom(await upWith(file));
  expect(stderr).toMatch(/^cannot use .*file: EEXIST/);
  expect(stderr).not.toMatch(/ at /);
  expect(exitCode).toBe(2);
});

it('a Temporal profile that does not exist is one message, exit code 2 and no stack', async () => {
  const { exitCode, stderr } = await stillroom(['runs'], { TEMPORAL_PROFILE: 'nope' });
  expect(stderr).toMatch(/connection settings cannot be used: .*'nope' not found/);
  expect(stderr).not.toMatch(/ at /);
  expect(exitCode).toBe(2);
});

it.each(['watch', 'status', 'stop'])('%s of a run without a name does not wait for it', async (command) => {
  const { exitCode, stderr } = await stillroom([command, '']);
  expect(stderr).toMatch(/id of the run is empty/);
  expect(exitCode).toBe(2);
});
