import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HarborRunner, type RunnerProcessOptions, sweepSandboxes } from '../../services/harbor/index.ts';
import { checkSandbox } from '../../services/harbor/sandbox-check.ts';
import { SANDBOX_MODE, Setting, until } from '../harbor/setting.ts';
import { CGROUPS_ARE_HERE } from '../support/control-groups.ts';

const REASON = 'the sandbox used more than 96 MB of memory and its processes were ended (limits.total_memory_mb)';
const HOG = 'for i in $(seq 8); do head -c 40M /dev/zero | tail -c 40M | sleep 30 & done; wait';

if (CGROUPS_ARE_HERE && SANDBOX_MODE === 'bwrap') {
  describe('control groups', () => {
    let setting: Setting;
    beforeAll(async () => {
      setting = await Setting.make();
    });
    afterAll(async () => {
      await setting?.[Symbol.asyncDispose]();
    });
    const python = (script: string, { pluginDir, sandboxRoot }: RunnerProcessOptions = setting.options) =>
      [[join(import.meta.dirname, script)], { env: { PYTHONPATH: pluginDir, STILLROOM_SANDBOX_ROOT: sandboxRoot ?? '' } }] as const;

    test('stop what takes too much memory or too many processes though nobody looks, and are removed', async () => {
      const seen = JSON.parse((await execa(setting.options.python, ...python('hog.py'))).stdout);
      const ended = { code: 137, stdout: '', stderr: [REASON] };
      const again = { code: 0, stdout: 'again\n', stderr: [] };
      expect(seen).toEqual({ told: [ended, again, ended, again], reasons: [REASON, REASON], forksRefused: true, left: [] });
    });

    test('tell a trial what sampling tells it, and it is graded either way', async () => {
      await using runner = await HarborRunner.start(setting.options);
      const limits = { total_memory_mb: 96, disk_mb: 32 };
      const run = (cgroups: boolean) => setting.run(runner, [HOG, 'cp sun map'], { kwargs: { limits, cgroups } });
      for (const { reward, observations, trialDir } of await Promise.all([run(true), run(false)])) {
        expect({ reward, first: observations[0]?.slice(0, 5) }).toEqual({ reward: 1, first: '[137]' });
        expect(await readFile(join(trialDir, 'trial.log'), 'utf8')).toContain(REASON);
      }
    });

    test("of a dead runner are swept with what is in them, a living one's stay", async () => {
      await mkdir(join(setting.dir, 'sandboxes'), { recursive: true });
      const [dead, living] = await Promise.all([orphan(), orphan()]);
      dead.runner.kill('SIGKILL');
      await once(dead.runner, 'exit');
      await sweepSandboxes(setting.options);
      expect(dead.folders.filter(existsSync)).toEqual([]);
      await until('its process is gone', async () => !isRunning(dead.pid));
      expect(living.folders.filter(existsSync)).toEqual(living.folders);
      expect(isRunning(living.pid)).toBe(true);
      living.runner.kill('SIGKILL');
      await once(living.runner, 'exit');
      await sweepSandboxes(setting.options);
      expect(living.folders.filter(existsSync)).toEqual([]);
    });

    test('are what the check of this machine reports', async () => {
      const { python, pluginDir, sandboxRoot = '' } = setting.options;
      const found = await checkSandbox({ python, pluginDir, mode: 'bwrap', sandboxRoot });
      expect(found).toMatchObject({ ok: true, protection: { totalMemory: 'cgroup' } });
    });

    async function orphan(): Promise<{ runner: ReturnType<typeof spawn>; folders: string[]; pid: number }> {
      const [args, options] = python('orphan.py');
      const runner = spawn(setting.options.python, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
      const [line] = await once(runner.stdout, 'data');
      return { runner, ...JSON.parse(String(line)) };
    }
  });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
