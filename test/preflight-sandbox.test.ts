import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandboxActivities } from '../activities/preflight.ts';
import { CONFIG, Project, TEMPLATE } from '../activities/testing/project.ts';
import type { Check } from '../core/run/results.ts';
import { HarborRunner, harborPython } from '../services/harbor/index.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import { SANDBOX_MODE } from './harbor/setting.ts';
import { TMUX_IS_HERE } from './harbor/terminus-setting.ts';

let project: Project;
let folder: string;
let runner: HarborRunner;
const startRunner = async (env: Record<string, string> = {}) => {
  const sandboxRoot = join(folder, 'sandboxes');
  await mkdir(sandboxRoot, { recursive: true });
  const python = await harborPython(PROJECT_ROOT);
  const options = { python, pluginDir: join(PROJECT_ROOT, 'harbor_plugin'), agentsDir: join(folder, 'agents'), home: join(folder, 'home') };
  return HarborRunner.start({ ...options, sandboxRoot, env });
};
beforeAll(async () => {
  project = await Project.make();
  folder = await mkdtemp(join(tmpdir(), 'stillroom-dry-run-'));
  runner = await startRunner();
});
afterAll(async () => {
  await runner?.close();
  await project?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

let runs = 0;
type Wish = {
  readonly testScript?: string;
  readonly rewardKey?: string;
  readonly kwargs?: object;
  readonly importPath?: string;
  readonly harbor?: () => Promise<HarborRunner>;
  /** Another agent than `turn`: `pi`, or a document. */
  readonly agent?: 'turn' | 'pi' | Readonly<Record<string, unknown>>;
};

/** The sandbox check of a run whose first task has this grader. */
async function check(
  {
    testScript,
    rewardKey = 'reward',
    kwargs = {},
    importPath = TEMPLATE.environment.import_path,
    harbor = async () => runner,
    agent = 'turn',
  }: Wish = {},
  activity = new MockActivityEnvironment(),
) {
  runs += 1;
  const trialsDir = join(folder, 'trials');
  const environment = { import_path: importPath, kwargs: { mode: SANDBOX_MODE, ...kwargs } };
  await project.file('job.json', JSON.stringify({ ...TEMPLATE, environment }));
  await project.task('a', testScript === undefined ? {} : { testScript });
  const config = CONFIG.replace('[harbor]', `[harbor]\nreward_key = "${rewardKey}"`);
  const named =
    typeof agent === 'string' ? agent : `mine@v${(await project.harnesses.save(agent, { name: 'mine', key: `${runs}` })).version}`;
  const { ref } = await project.resolve({ config, agent: named }, { runId: `run-${runs}`, executionId: `e${runs}` });
  const deps = { records: project.records, harbor, trialsDir: async () => trialsDir, tasks: project.tasks, gateway: {} };
  const { checkSandbox } = createSandboxActivities(deps);
  const checks = (await activity.run(checkSandbox, { run: ref })) as readonly Check[];
  return { ...checks[0], count: checks.length, left: await readdir(trialsDir).catch(() => []) };
}

const reward = (text: string) => `echo ${text} > "$LOGS_DIR/verifier/reward.txt"\n`;

describe('the dry-run trial', () => {
  it.each([0, 0.5])('passes with any reward, on tasks of both splits: %d', async (value) => {
    const result = await check({ testScript: reward(String(value)) });
    expect(result).toMatchObject({ name: 'dry-run trial', ok: true, count: 1, left: [], numbers: { tasks: 4, solved: 0 } });
    expect(result.detail).toMatch(
      `task a: reward ${value}, task b: reward 0, task x: reward 0, task y: reward 0 for an agent that does nothing`,
    );
    expect(result.warnings).toBeUndefined();
  });

  it('warns of a task that is solved by doing nothing, and names it', async () => {
    const result = await check({ testScript: reward('1') });
    expect(result).toMatchObject({ ok: true, numbers: { tasks: 4, solved: 1 } });
    expect(result.warnings).toEqual([expect.stringMatching(/^task a gives the full reward to an agent that does nothing/)]);
  });

  it('fails when every task is solved by doing nothing', async () => {
    const others = ['b', 'x', 'y'];
    for (const id of others) await project.task(id, { testScript: reward('1') });
    const result = await check({ testScript: reward('1') });
    for (const id of others) await project.task(id);
    expect(result).toMatchObject({ ok: false, left: [] });
    expect(result.detail).toMatch(/the benchmark is broken, its grader gives the full reward .*: tasks a, b, x, y\./);
  });

  it('names every task that is broken, each with its reason', async () => {
    await project.task('y', { testScript: reward('7') });
    const result = await check({ testScript: 'exit 0\n' });
    await project.task('y');
    expect(result.detail).toMatch(/^task a: the benchmark is broken.*\ntask y: the benchmark is broken.*outside \[0, 1\]$/s);
  });

  it.each<[string, Wish, RegExp]>([
    [
      'a grader that writes no reward',
      { testScript: 'exit 0\n' },
      /^task a: the benchmark is broken, its grader yields no reward: .*Reward/,
    ],
    ['a grader that crashes', { testScript: 'exit 3\n' }, /the benchmark is broken, its grader yields no reward: .*Reward/],
    ['a reward that is no number', { testScript: reward('solved') }, /the benchmark is broken, its grader yields no reward: /],
    ['a reward out of range', { testScript: reward('7') }, /the benchmark is broken, .*reward "reward" is 7, outside \[0, 1\]/],
    ['a reward under another name', { rewardKey: 'score' }, /the benchmark is broken, .*no reward "score" \(only reward\)/],
    [
      'a sandbox that cannot start',
      { kwargs: { mode: 'docker' } },
      /^tasks a, b, x, y: the sandbox did not get as far as the grader: .*docker/,
    ],
    ['an environment class that is not there', { importPath: 'stillroom_harbor.environment:Missing' }, /Missing/],
    [
      'no Python for harbor',
      { harbor: () => harborPython('/nowhere').then(() => runner) },
      /^no Python at .*: (run `npm run demo`|STILLROOM_PYTHON must name)/,
    ],
  ])('fails by name with %s', async (_, wish, detail) => {
    const result = await check(wish);
    expect(result).toMatchObject({ name: 'dry-run trial', ok: false, count: 1, left: [] });
    expect(result.detail).toMatch(detail);
  });

  describe('looks whether the agent could play', () => {
    const AGENT = `from harbor.agents.base import BaseAgent
class Agent(BaseAgent):
    def __init__(self, logs_dir, *, api_base, model, temperature, max_tokens, max_turns, loud=False, **kwargs):
        if loud: raise ValueError("this agent cannot be loud")
        super().__init__(logs_dir=logs_dir, **kwargs)
    @staticmethod
    def name(): return "own"
    def version(self): return "1"
    async def setup(self, environment): raise RuntimeError("it was set up")
    async def run(self, instruction, environment, context): raise RuntimeError("it ran")
`;
    beforeAll(async () => {
      await mkdir(join(folder, 'agents'));
      await writeFile(join(folder, 'agents/own_agent.py'), AGENT);
      await mkdir(join(folder, 'empty'));
    });
    const own = { runtime: 'import', import_path: 'own_agent:Agent' };

    it('one of its own, which it makes and never starts', async () => {
      expect(await check({ agent: own })).toMatchObject({ ok: true, left: [] });
    });

    it.each<[string, Wish, RegExp]>([
      [
        'a module that is not there',
        { agent: { runtime: 'import', import_path: 'no_agent:Agent' } },
        /^agent mine: the agent cannot be made: .*no_agent/,
      ],
      [
        'a class that is not in it',
        { agent: { ...own, import_path: 'own_agent:Other' } },
        /^agent mine: the agent cannot be made: .*Other/,
      ],
      ['an option that it does not take', { agent: { ...own, kwargs: { loud: true } } }, /^agent mine: the agent cannot be made: .*loud/],
    ])('%s', async (_, wish, detail) => {
      const result = await check(wish);
      expect(result).toMatchObject({ name: 'dry-run trial', ok: false, left: [] });
      expect(result.detail).toMatch(detail);
    });

    it('pi needs tmux in a process sandbox, and no model', async () => {
      const shell = execFileSync('sh', ['-c', 'command -v bash'], { encoding: 'utf8' }).trim();
      await symlink(shell, join(folder, 'empty/bash'));
      const result = await check({ agent: 'pi', kwargs: { persistent_env: { PATH: join(folder, 'empty') } } });
      expect(result).toMatchObject({
        ok: false,
        detail: expect.stringMatching(/^agent pi: tmux is not in the sandbox.* install the package tmux/),
      });
      if (TMUX_IS_HERE) expect(await check({ agent: 'pi' })).toMatchObject({ ok: true });
    }, 60_000);
  });

  it('beats while it waits for the trial, which a cancellation ends and clears away', async () => {
    const activity = new MockActivityEnvironment();
    activity.on('heartbeat', () => activity.cancel('CANCELLED'));
    await expect(check({ testScript: 'sleep 30\n' }, activity)).rejects.toMatchObject({ name: 'CancelledFailure' });
    expect(await readdir(join(folder, 'trials'))).toEqual([]);
  });

  if (SANDBOX_MODE === 'bwrap')
    it("fails by name with bubblewrap's own words where the machine refuses it", async () => {
      const bin = join(folder, 'bin');
      await mkdir(bin);
      await writeFile(join(bin, 'bwrap'), '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n', { mode: 0o755 });
      await using refused = await startRunner({ PATH: `${bin}:${process.env.PATH}` });
      const result = await check({ harbor: async () => refused });
      expect(result).toMatchObject({ name: 'dry-run trial', ok: false });
      expect(result.detail).toMatch(/the sandbox did not get as far as the grader: .*setting up uid map: Permission denied/);
    });
});
