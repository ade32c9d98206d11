import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execaNode } from 'execa';
import { expect, it } from 'vitest';
import { processes } from '../support/process-tree.ts';

it('Ctrl-C ends everything, and says what is left', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'chaos-interrupt-'));
  const chaos = execaNode(join(import.meta.dirname, 'main.ts'), ['--kills', '1'], { reject: false, env: { TMPDIR: folder } });
  const started = () => processes().filter(({ command }) => command.includes(folder));
  while (started().length === 0) await sleep(50);
  chaos.kill('SIGINT');
  const { exitCode, stderr } = await chaos;
  expect(exitCode).toBe(130);
  expect(stderr).toContain(`left are ${join(folder, readdirSync(folder)[0] ?? '?')}`);
  while (started().length > 0) await sleep(100);
  rmSync(folder, { recursive: true });
}, 60_000);
