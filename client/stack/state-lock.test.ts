import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockState } from './state-lock.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'state-lock-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('a second stack in the same folder is refused with what to do, until the first gives it back', () => {
  const unlock = lockState(dir);
  expect(() => lockState(dir)).toThrow(new RegExp(`in use by another .* \\(pid ${process.pid}\\).* choose another folder with --state`));
  unlock();
  lockState(dir)();
});

test.each([
  ['of a process that was killed', () => `${spawnSync(process.execPath, ['-e', '']).pid}\n`],
  ['that was never finished', () => ''],
])('a lock %s is taken over', (_, content) => {
  writeFileSync(join(dir, 'stack.pid'), content());
  expect(() => lockState(dir)()).not.toThrow();
});
