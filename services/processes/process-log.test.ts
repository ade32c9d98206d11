import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProcessLog } from './process-log.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'process-log-'));
});
afterEach(() => rm(dir, { recursive: true }));

it('keeps what was written, and its end for an error message', async () => {
  const log = new ProcessLog(dir, 'worker');
  log.write('one\n');
  log.write(Buffer.from('two\nthree\n'));
  log.close();
  log.write('too late\n');
  expect(await readFile(log.file, 'utf8')).toBe('one\ntwo\nthree\n');
  expect(log.tail(2)).toBe('two\nthree');
});

// /dev/full answers every write with "no space left on device"
it.runIf(process.platform === 'linux')('a full disk loses output and nothing else', async () => {
  await symlink('/dev/full', join(dir, 'worker.log'));
  const log = new ProcessLog(dir, 'worker');
  expect(() => log.write('lost on the disk\n')).not.toThrow();
  expect(log.tail(1)).toBe('lost on the disk');
  log.close();
});

it('goes on when its folder was removed before it grew too long', async () => {
  const log = new ProcessLog(dir, 'worker');
  log.write('x'.repeat(9 * 1024 * 1024));
  await rm(log.file);
  expect(() => log.write('after\n')).not.toThrow();
  log.close();
});
