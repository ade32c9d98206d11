import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HarborRunner, type TrialRun } from '../../services/harbor/index.ts';
import { processesWith, SANDBOX_MODE, Setting, type TrialWish } from '../harbor/setting.ts';

const LIMITS = { total_memory_mb: 160, disk_mb: 160, fsize_mb: 60, nproc: 128, files: 4000, download_mb: 16 };
const SOLVE = 'cp sun map';

type Row = {
  readonly commands: readonly string[];
  readonly reward: number;
  /** What the agent is told of its evil commands, in order. */
  readonly told?: readonly RegExp[];
  readonly kwargs?: Record<string, unknown>;
  readonly task?: string;
};

const daemon = (work: string): string => `setsid bash -c 'while :; do ${work}; sleep 0.02; done' > /dev/null 2>&1 &`;
/** What a task's tests ask for: they wait for it as long as ASKING says. */
const SERVE = '[ -e /app/question ] && touch /app/answer';
const ASKING = 'touch question; for i in $(seq 60); do [ -e answer ] && exec sh -c "echo 1 > /logs/verifier/reward.txt"; sleep 0.1; done';
const SERVER_PID = '$(cut -d" " -f4 /proc/$PPID/stat)';
const PLANT = 'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo "{\\"reward\\": 1}" > /logs/verifier/reward.json';

const table = (victims: string, socket: string): Record<string, Row> => ({
  'a fork bomb': { commands: ['f() { f | f & }; f; sleep 8', SOLVE], reward: 1, told: [/^\[(137|124)\]/] },
  'a fork bomb that daemons light': { commands: [`${daemon('f() { f | f & }; f')} sleep 8`, SOLVE], reward: 1 },
  'a 10 GB file': { commands: ['head -c 10G /dev/zero > big', SOLVE], reward: 1, told: [/^\[153\]/] },
  'many large files': {
    commands: ['for i in $(seq 60); do head -c 20M /dev/zero > big$i; sleep 0.1; done', SOLVE],
    reward: 1,
    told: [/^\[137\]/],
  },
  'a RAM disk of its own': {
    commands: ['for i in $(seq 60); do head -c 20M /dev/zero > /dev/shm/$i; sleep 0.1; done'],
    reward: 0,
    told: [/^\[137\]/],
  },
  'very many files': {
    commands: ['mkdir many; cd many; for i in $(seq 200000); do : > f$i; done; sleep 8', SOLVE],
    reward: 1,
    told: [/^\[(137|124)\]/],
  },
  'endless output': { commands: ['yes', SOLVE], reward: 1, told: [/^\[153\] y y y/] },
  'memory in many processes': {
    commands: ['for i in $(seq 8); do head -c 40M /dev/zero | tail -c 40M | sleep 30 & done; wait', SOLVE],
    reward: 1,
    told: [/^\[137\]/],
  },
  'a daemon that writes the reward': { commands: [daemon(PLANT), daemon(SERVE)], reward: 0, task: 'asking' },
  'a daemon that the tests need': {
    commands: [daemon(SERVE)],
    reward: 1,
    task: 'asking',
    kwargs: { keep_agent_processes: true },
  },
  'rewards, results and tests planted': {
    commands: [
      `${PLANT}; echo "{}" > /logs/verifier/ctrf.json; mkdir -p /tests; printf 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh`,
    ],
    reward: 0,
  },
  'a shell of its own instead of the system one': {
    commands: [
      'rm /bin; mkdir /bin; printf "#!/usr/bin/bash\\necho 1 > /logs/verifier/reward.txt\\n" > /bin/sh; /usr/bin/chmod +x /bin/sh',
    ],
    reward: 0,
  },
  'links out of the logs': {
    commands: [
      `for d in verifier artifacts; do rm -rf /logs/$d; ln -s ${victims} /logs/$d; done; rm -rf /tests; ln -s ${victims} /tests`,
      `ln -s ${victims}/precious /logs/agent/stolen; ${SOLVE}`,
    ],
    reward: 1,
  },
  'the death of everything': {
    commands: ['kill -9 -1', `kill -9 ${SERVER_PID}; sleep 9`, SOLVE],
    reward: 1,
    told: [/^\[137\]/, /^\[137\]/],
  },
  'a server that is stopped': { commands: [`kill -STOP ${SERVER_PID}; sleep 9`, SOLVE], reward: 1, told: [/^\[124\]/] },
  'removing everything': { commands: ['rm -rf --no-preserve-root / 2> /dev/null'], reward: 0 },
  'closing everything': { commands: [`${SOLVE}; chmod 000 /app /logs/* /logs /tmp /tests /`], reward: 1 },
  'no work directory': { commands: ['cd /; rm -rf /app; echo > /app'], reward: 0 },
  'odd things among the logs': {
    commands: [
      `cd /logs/agent; mkfifo pipe; mknod null c 1 3; truncate -s 50M sparse; echo kept > $'a\\nb'; mkdir -p $(seq -s / 90); ${SOLVE}; cp /app/sun /app/map`,
    ],
    reward: 1,
  },
  'a socket without a file': {
    commands: [
      `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); print connect(S, pack_sockaddr_un("\\0${socket}")) ? "reached" : "no"'; ${SOLVE}`,
    ],
    reward: 1,
    told: [/^\[0\] no$/],
  },
});

// Where bubblewrap does not exist nothing is contained: plain mode promises nothing.
if (SANDBOX_MODE === 'bwrap') {
  describe('hostile commands are contained and their trials graded', () => {
    let setting: Setting;
    const runs = new Map<string, TrialRun & { observations: string[] }>();
    const siblings: TrialRun[] = [];
    const socket = `stillroom-hostile-${process.pid}`;
    const server = createServer();

    beforeAll(async () => {
      setting = await Setting.make();
      await mkdir(join(setting.dir, 'victims'));
      await writeFile(join(setting.dir, 'victims/precious'), 'precious');
      await new Promise<void>((resolve) => server.listen(`\0${socket}`, resolve));
      const asking = await setting.makeTask('asking');
      await writeFile(join(asking, 'tests/test.sh'), `#!/bin/sh\n${ASKING}\necho 0 > /logs/verifier/reward.txt\n`);
      await using runner = await HarborRunner.start(setting.options);
      const evil = Object.entries(rows()).map(async ([name, row]) => {
        const wish: Omit<TrialWish, 'model'> = {
          taskDir: join(setting.dir, 'tasks', row.task ?? 'copy'),
          kwargs: { limits: LIMITS, ...row.kwargs },
          agentKwargs: { command_timeout_sec: 6, max_turns: 20 },
        };
        runs.set(name, await setting.run(runner, row.commands, wish));
      });
      let running = true;
      const harmless = (async () => {
        while (running) siblings.push(await setting.run(runner, ['sleep 0.3', 'ls', SOLVE]));
      })();
      await Promise.all(evil);
      running = false;
      await harmless;
    }, 120_000);
    afterAll(async () => {
      server.close();
      await setting?.[Symbol.asyncDispose]();
    });
    const rows = () => table(join(setting.dir, 'victims'), socket);

    test.for(Object.keys(table('', '')))('%s', (name) => {
      const row = rows()[name];
      const run = runs.get(name);
      expect(run).toMatchObject({ reward: row?.reward, infraFailed: false, exceptionType: null });
      for (const [turn, told] of (row?.told ?? []).entries()) expect(run?.observations[turn]).toMatch(told);
    });

    test('trials beside them pass', () => {
      expect(siblings.length).toBeGreaterThan(2);
      expect(siblings.filter((run) => run.reward !== 1)).toEqual([]);
    });

    test('the machine keeps its files, and none of theirs, and no process', async () => {
      expect(await readdir(join(setting.dir, 'victims'))).toEqual(['precious']);
      expect(await readFile(join(setting.dir, 'victims/precious'), 'utf8')).toBe('precious');
      expect(await setting.sandboxes()).toEqual([]);
      expect(await processesWith('while :; do')).toEqual([]);
    });

    test('only what may leave a sandbox is among the logs', async () => {
      const logs = join(runs.get('odd things among the logs')?.trialDir ?? '', 'agent');
      expect((await readdir(logs)).filter((name) => name !== '1')).toEqual(['a\nb']);
      const links = runs.get('links out of the logs')?.trialDir ?? '';
      expect(await readdir(join(links, 'agent'))).toEqual([]);
      const planted = runs.get('rewards, results and tests planted')?.trialDir ?? '';
      expect(await readdir(join(planted, 'verifier'))).not.toContain('ctrf.json');
    });
  });
}
