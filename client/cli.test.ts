import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaNode } from 'execa';
import getPort from 'get-port';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

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

describe('estimate, with no server to ask', () => {
  const files = () => {
    writeFileSync(join(dir, 'run.toml'), '[student]\nbase_model = "s"\n[teacher]\nmodel = "t"\n[harbor]\njob_template = "none.json"\n');
    writeFileSync(join(dir, 'train.json'), '["a", "b"]');
    writeFileSync(join(dir, 'holdout.json'), '["c"]');
    return ['--config', join(dir, 'run.toml'), '--tasks', join(dir, 'train.json'), '--holdout', join(dir, 'holdout.json')];
  };
  const estimate = (...args: string[]) => stillroom(['estimate', ...args], { TEMPORAL_ADDRESS: '127.0.0.1:1', TEMPORAL_PROFILE: 'nope' });

  it('prints the table of files', async () => {
    const { exitCode, stdout, stderr } = await estimate(...files());
    expect(stdout).toMatch(/^meter +tokens +USD per million +USD$/m);
    expect(stdout).toContain('Nothing bounds this spend');
    expect([exitCode, stderr]).toEqual([0, '']);
  });

  it('prints it as one JSON value', async () => {
    const { stdout } = await estimate(...files(), '--json');
    // 40 steps × 2 tasks × 4 attempts; 3 evaluations of 1 task × 3
    const expected = {
      trainEpisodes: 320,
      baselineEpisodes: 9,
      bounded: false,
      maxUsd: null,
      refusals: [],
      tasks: { train: 2, holdout: 1 },
    };
    expect(JSON.parse(stdout)).toMatchObject(expected);
  });

  it('tells everything that is wrong at once, exit code 2', async () => {
    const given = files();
    writeFileSync(join(dir, 'run.toml'), '[train]\nsteps = 0\n');
    writeFileSync(join(dir, 'holdout.json'), '["c", "c"]');
    const { exitCode, stdout, stderr } = await estimate(...given);
    for (const part of ['[student] is missing', 'train.steps = 0', 'holdout.json: names c more than once']) expect(stderr).toContain(part);
    expect([exitCode, stdout]).toEqual([2, '']);
  });

  it.each([[[]], [['--config', 'run.toml']], [['some-run', '--config', 'run.toml']]])(
    'does not guess what is meant by %j',
    async (args) => {
      const { exitCode, stderr } = await estimate(...args);
      expect(stderr).toMatch(/^estimate (needs the id of a run, or all of|takes a run or files, not both)/);
      expect(exitCode).toBe(2);
    },
  );
});

describe('harness, with no server to ask', () => {
  const harness = (...args: string[]) => stillroom(['harness', ...args], { TEMPORAL_ADDRESS: '127.0.0.1:1', TEMPORAL_PROFILE: 'nope' });

  it('a document that is wrong is told by file and field, exit code 2', async () => {
    const file = join(dir, 'agent.json');
    writeFileSync(file, '{"runtime": "turn", "kwargs": {"model": "m"}}');
    const { exitCode, stdout, stderr } = await harness('add', 'mine', file);
    expect(stderr).toBe(`${file}: kwargs.model: is set by Stillroom, from the run's config and for each trial: leave it out`);
    expect([exitCode, stdout]).toEqual([2, '']);
  });

  it('shows a built-in agent, and says what is not there', async () => {
    expect((await harness('show', 'pi')).stdout).toMatch(/^agent {4}pi, built in\nruntime {2}terminus-2$/m);
    expect(JSON.parse((await harness('show', 'turn', '--json')).stdout)).toMatchObject({ runtime: 'turn', ref: 'builtin' });
    expect(await harness('alias', 'nobody-here', 'best', 'v1')).toMatchObject({
      exitCode: 2,
      stderr: 'agent nobody-here has no version 1',
    });
  });
});
