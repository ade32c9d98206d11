import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, describe, expect, it } from 'vitest';
import type { QuickTask } from './content.ts';
import { createRng, demonstrateSloppily, filesAfter, isSolved, promptText, quickstartSplits } from './content.ts';
import { DEFAULT_DIR, generateQuickstart } from './generate.ts';

const root = mkdtempSync(join(tmpdir(), 'quickstart-'));
afterAll(() => rmSync(root, { recursive: true }));
const quickstart = generateQuickstart(join(root, 'q'));
const { train, holdout } = quickstartSplits();
const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

let sandboxes = 0;

/** Runs a task's scripts as the process sandbox does: work directory as cwd, tests and logs named by variables. */
function judge(task: QuickTask, change: (app: string) => void): string {
  const sandbox = join(root, `sandbox-${sandboxes++}`);
  const app = join(sandbox, 'app');
  const logs = join(sandbox, 'logs');
  const folder = join(quickstart.tasksDir, task.id);
  mkdirSync(join(logs, 'verifier'), { recursive: true });
  cpSync(join(folder, 'environment'), app, { recursive: true, filter: (path) => !path.endsWith('Dockerfile') });
  change(app);
  const run = spawnSync('/bin/bash', [join(folder, 'tests', 'test.sh')], { cwd: app, encoding: 'utf8', env: { PATH: '', LOGS_DIR: logs } });
  expect(run.stderr).toBe('');
  return readFileSync(join(logs, 'verifier', 'reward.txt'), 'utf8');
}

function solve(task: QuickTask): (app: string) => void {
  return (app) => {
    const script = join(quickstart.tasksDir, task.id, 'solution', 'solve.sh');
    const { status } = spawnSync('bash', [script], { cwd: app });
    expect(status).toBe(0);
  };
}

describe('the generated files', () => {
  it('list the ids of both splits, each with its folder', () => {
    expect(readJson(quickstart.trainPath)).toEqual(train.map(({ id }) => id));
    expect(readJson(quickstart.holdoutPath)).toEqual(holdout.map(({ id }) => id));
    expect(readdirSync(quickstart.tasksDir).sort()).toEqual([...quickstart.trainIds, ...quickstart.holdoutIds].sort());
  });

  it('are harbor task folders without network', () => {
    const [task] = holdout as [QuickTask];
    const folder = join(quickstart.tasksDir, task.id);
    expect(parse(readFileSync(join(folder, 'task.toml'), 'utf8'))).toMatchObject({
      schema_version: '1.4',
      task: { name: `stillroom-quickstart/${task.id}` },
      environment: { network_mode: 'no-network', workdir: '/app' },
    });
    expect(readFileSync(join(folder, 'instruction.md'), 'utf8')).toBe(promptText(task));
    expect(readdirSync(join(folder, 'environment')).sort()).toEqual(['Dockerfile', ...Object.keys(task.files)].sort());
    expect(statSync(join(folder, 'tests', 'test.sh')).mode & 0o777).toBe(0o755);
  });

  it('are left alone while nothing changed, and replaced when an option does', () => {
    const dir = join(root, 'again');
    const sizes = { trainPerKind: 1, holdoutPerKind: 1 };
    const first = generateQuickstart(dir, { sizes });
    writeFileSync(join(dir, 'tasks', 'mark'), '');
    expect(generateQuickstart(dir, { sizes }).written).toBe(false);
    expect(existsSync(join(dir, 'tasks', 'mark'))).toBe(true);
    const second = generateQuickstart(dir, { sizes, seed: 5 });
    expect([first.written, second.written]).toEqual([true, true]);
    expect(readdirSync(second.tasksDir).sort()).toEqual([...second.trainIds, ...second.holdoutIds].sort());
  });

  it('leave no staging directory, not even that of a process that died', () => {
    const parent = join(root, 'staged');
    const dead = spawnSync('true').pid;
    mkdirSync(join(parent, `.q-staging-${dead}-abc`), { recursive: true });
    generateQuickstart(join(parent, 'q'), { sizes: { trainPerKind: 1, holdoutPerKind: 1 } });
    expect(readdirSync(parent)).toEqual(['q']);
  });

  it('never replace a directory of someone else', () => {
    const dir = join(root, 'mine');
    mkdirSync(dir);
    writeFileSync(join(dir, 'thesis.txt'), 'x');
    expect(() => generateQuickstart(dir)).toThrow('did not write');
    expect(readdirSync(dir)).toEqual(['thesis.txt']);
  });
});

describe('the verifier', () => {
  it.each(holdout.map((task) => [task.id, task] as const))('rewards the solution of %s and not idleness', (_id, task) => {
    expect(judge(task, solve(task))).toBe('1\n');
    expect(judge(task, () => undefined)).toBe('0\n');
  });

  it('agrees with the simulator about sloppy work', () => {
    const rng = createRng(8);
    for (const task of train.slice(0, 80)) {
      const files = filesAfter(task, demonstrateSloppily(task, rng));
      const reward = judge(task, (app) => {
        for (const name of readdirSync(app)) rmSync(join(app, name));
        for (const [name, content] of files) writeFileSync(join(app, name), content);
      });
      expect(reward, task.id).toBe(isSolved(task, files) ? '1\n' : '0\n');
    }
  });

  const [task] = holdout as [QuickTask];
  const [name, content] = Object.entries(task.expected)[0] as [string, string];
  const right = join(root, 'right');
  writeFileSync(right, content);
  const replace = (app: string, make: (path: string) => void): void => {
    rmSync(join(app, name));
    make(join(app, name));
  };
  const spoilers: [string, (app: string) => void][] = [
    ['an extra file', (app) => writeFileSync(join(app, 'new'), '')],
    ['a hidden file', (app) => writeFileSync(join(app, '.hidden'), '')],
    ['a file named like a glob', (app) => writeFileSync(join(app, '*'), '')],
    ['a directory', (app) => mkdirSync(join(app, 'sub'))],
    ['a dangling link', (app) => symlinkSync('nowhere', join(app, 'link'))],
    ['a missing final newline', (app) => writeFileSync(join(app, name), content.trimEnd())],
    ['an extra newline', (app) => writeFileSync(join(app, name), `${content}\n`)],
    ['a trailing space', (app) => writeFileSync(join(app, name), content.replace('\n', ' \n'))],
    ['a NUL byte at the end', (app) => writeFileSync(join(app, name), `${content}\0`)],
    ['an empty file', (app) => writeFileSync(join(app, name), '')],
    ['a missing file', (app) => rmSync(join(app, name))],
    ['a directory instead of the file', (app) => replace(app, mkdirSync)],
    ['a link instead of the file', (app) => replace(app, (path) => symlinkSync(right, path))],
  ];
  it.each(spoilers)('gives nothing for the solution with %s', (_what, spoil) => {
    const reward = judge(task, (app) => {
      solve(task)(app);
      spoil(app);
    });
    expect(reward).toBe('0\n');
  });
});

describe('the run config and the job template', () => {
  const projectRoot = join(import.meta.dirname, '..', '..');
  const config = parse(readFileSync(join(import.meta.dirname, 'run.toml'), 'utf8'));
  const job = readJson(join(import.meta.dirname, 'job.json'));

  it('point at each other and at what the generator writes', () => {
    expect(config).toMatchObject({ harbor: { job_template: relative(projectRoot, join(import.meta.dirname, 'job.json')) } });
    expect(job).toMatchObject({ datasets: [{ path: join(DEFAULT_DIR, 'tasks') }] });
  });

  it('set no agents: Stillroom does', () => {
    expect(job).not.toHaveProperty('agents');
  });
});
