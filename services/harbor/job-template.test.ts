import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { turnAgent } from './agents.ts';
import { BadHarborInput } from './errors.ts';
import { type JobTemplate, parseJobTemplate, readJobTemplate } from './job-template.ts';
import { sandboxMode } from './sandbox-mode.ts';
import { taskContentDigest, taskDigest } from './task-folder.ts';
import { indexTasks } from './tasks/task-index.ts';
import { trialConfig } from './trial-config.ts';

const environment = { import_path: 'stillroom_harbor.environment:ProcessEnvironment', kwargs: { limits: { nproc: 64 } } };
const valid = { environment, datasets: [{ path: 'tasks' }] };
const parse = (json: unknown) => parseJobTemplate(JSON.stringify(json), 'job.json');

function refusalOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}

const refused: [what: string, json: unknown, message: string][] = [
  ['agents', { ...valid, agents: [{ name: 'oracle' }] }, 'job.json: agents: must not be set'],
  ['an unknown key', { ...valid, n_attempts: 4 }, 'n_attempts'],
  [
    'an unknown key inside',
    { ...valid, environment: { ...environment, import_pth: 'x' } },
    'job.json: environment.import_pth: unknown key; did you mean "import_path"?',
  ],
  ['a wrong type', { ...valid, verifier: { override_timeout_sec: '60' } }, 'job.json: verifier.override_timeout_sec'],
  ['no environment', { datasets: valid.datasets }, 'job.json: environment'],
  ['an environment without a kind', { ...valid, environment: {} }, 'job.json: environment: needs either "type" '],
  ['an environment of two kinds', { ...valid, environment: { ...environment, type: 'docker' } }, 'job.json: environment: '],
  ['no place for tasks', { environment }, 'job.json: tasks, datasets: name at least one place'],
  ['what is no object', [valid], 'job.json: '],
  ['the name of a job', { ...valid, job_name: 'x' }, 'job.json: job_name: must not be set: a run is named when it is started'],
  ['attempts', { ...valid, n_attempts: 4 }, 'job.json: n_attempts: must not be set: set train.group_size'],
  ['concurrency', { ...valid, n_concurrent_trials: 4 }, 'job.json: n_concurrent_trials: must not be set: set train.trial_concurrency'],
  ["harbor's own registry", { environment, tasks: [{ name: 'org/task', path: 'x' }] }, "job.json: tasks.0.name: harbor's registry"],
  ['a dataset of it', { environment, datasets: [{ name: 'org/set' }] }, "job.json: datasets.0.name: harbor's registry"],
  [
    'a repository with a password',
    { environment, tasks: [{ path: 'a', git_url: 'https://me:pw@h/r' }] },
    'tasks.0.git_url: must not hold a user',
  ],
  ['a helper as a repository', { environment, tasks: [{ path: 'a', git_url: 'ext::sh -c id' }] }, 'job.json: tasks.0.git_url'],
  ['a path out of a repository', { environment, tasks: [{ path: '../a', git_url: 'https://h/r' }] }, 'job.json: tasks.0.path'],
  [
    'a commit without a repository',
    { environment, tasks: [{ path: 'a', git_commit_id: 'main' }] },
    'tasks.0.git_commit_id: needs "git_url"',
  ],
  ["harbor's own retries", { ...valid, retry: { max_retries: 2 } }, 'job.json: retry.max_retries: must be 0'],
];
test.each(refused)('refuses %s, naming file and field', (_what, json, message) => {
  expect(() => parse(json)).toThrow(BadHarborInput);
  expect(() => parse(json)).toThrow(message);
});

test('tells everything that is wrong at once, a line each', () => {
  const wrong = { environment: {}, datasets: [{ path: 'tasks', task_name: ['a*'] }], agents: [], retry: { max_retries: 1 } };
  const lines = refusalOf(() => parse(wrong)).split('\n');
  for (const field of ['environment', 'datasets.0.task_name', 'agents', 'retry.max_retries'])
    expect(lines.filter((line) => line.startsWith(`job.json: ${field}: `))).toHaveLength(1);
});

test('is JSON or YAML, by the ending of its file', () => {
  const text = 'environment:\n  type: docker\ndatasets:\n  - path: tasks\n';
  expect(parseJobTemplate(text, 'job.yaml')).toEqual({ environment: { type: 'docker' }, datasets: [{ path: 'tasks' }] });
  expect(() => parseJobTemplate(text, 'job.json')).toThrow(/^job\.json: not JSON/);
  expect(() => parseJobTemplate('environment: [', 'job.yaml')).toThrow(/^job\.yaml: /);
});

test('refuses broken JSON and missing files by name', async () => {
  expect(() => parseJobTemplate('{"environment": ', 'job.json')).toThrow(/^job\.json: not JSON/);
  await expect(readJobTemplate('/nowhere/job.json')).rejects.toThrow(/^\/nowhere\/job\.json: cannot be read/);
});

test.each([
  ['bwrap', {}],
  ['plain', { kwargs: { mode: 'plain' } }],
  [null, { import_path: undefined, type: 'docker' }],
])('knows the mode of the process sandbox: %s', (mode, over) => {
  expect(sandboxMode(parse({ ...valid, environment: { ...environment, ...over } }))).toBe(mode);
});

test('carries whatever an environment of harbor may be told, and refuses what would leave trials ungraded', () => {
  const docker = {
    type: 'docker',
    delete: false,
    stream: false,
    override_cpus: 1.5,
    override_tpu: { type: 'v6e', topology: '2x4' },
    mounts: [{ type: 'bind', source: '/data', target: '/data', read_only: true, bind: { create_host_path: false } }],
    extra_docker_compose: ['overlay.yaml'],
    extra_allowed_hosts: ['example.com'],
    cpu_enforcement_policy: 'ignore',
  };
  const template = parse({ ...valid, environment: docker, verifier: { include_logs: ['*.xml'], disable: false } });
  expect(template).toMatchObject({ environment: docker, verifier: { include_logs: ['*.xml'] } });
  expect(() => parse({ ...valid, verifier: { disable: true } })).toThrow('job.json: verifier.disable: must be false');
  expect(() => parse({ ...valid, environment: { ...docker, mounts: [{ target: 'data' }] } })).toThrow('job.json: environment.mounts.0');
});

test('a trial config holds the template without what belongs to a job', () => {
  const template = parse({ ...valid, quiet: true, retry: { max_retries: 0 }, verifier: { kwargs: { a: 1 } } });
  const agent = turnAgent({ apiBase: 'http://127.0.0.1:1/v1', model: 'm', maxTurns: 5, temperature: 1, maxTokens: 26 });
  const input = {
    taskDir: '/tasks/a',
    trialName: 'run-a-1',
    trialsDir: '/trials',
    template,
    agent,
    timeouts: { agentMs: 90_000, verifierMs: 30_000 },
  };
  expect(trialConfig(input)).toEqual({
    trial_name: 'run-a-1',
    trials_dir: '/trials',
    task: { path: '/tasks/a' },
    environment,
    verifier: { kwargs: { a: 1 }, override_timeout_sec: 30 },
    agent: {
      override_timeout_sec: 90,
      import_path: 'stillroom_harbor.turn_agent:TurnAgent',
      kwargs: { api_base: 'http://127.0.0.1:1/v1', model: 'm', max_turns: 5, temperature: 1, max_tokens: 26 },
    },
  });
  expect(() => trialConfig({ ...input, trialName: '../escape' })).toThrow(BadHarborInput);
});

describe('task folders', () => {
  let dir: string;
  const write = async (path: string, text: string) => {
    await mkdir(join(dir, path, '..'), { recursive: true });
    await writeFile(join(dir, path), text);
  };
  const makeTask = async (path: string, instruction = 'do it') => {
    await write(`${path}/task.toml`, `[task]\nname = "lab/${path.split('/').pop()}"\n`);
    await write(`${path}/instruction.md`, instruction);
    await write(`${path}/environment/data`, '7\n');
    await write(`${path}/tests/test.sh`, 'echo 1 > /logs/verifier/reward.txt');
  };

  const found = async (template: JobTemplate, ids: string[]) => (await indexTasks(template, dir, null)).find(ids);

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'stillroom-tasks-'));
    for (const path of ['tasks/a', 'tasks/b', 'lone/c']) await makeTask(path);
    await makeTask('tasks/other', 'do something else');
    await makeTask('tasks/untested');
    await rm(join(dir, 'tasks/untested/tests'), { recursive: true });
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  test('are found in datasets and by their own path', async () => {
    const template = parse({ environment, datasets: [{ path: 'tasks' }], tasks: [{ path: 'lone/c' }] });
    expect(await found(template, ['b', 'c'])).toEqual([
      { kind: 'local', id: 'b', dir: join(dir, 'tasks/b') },
      { kind: 'local', id: 'c', dir: join(dir, 'lone/c') },
    ]);
  });

  test('that are missing or lack a file are refused by name', async () => {
    await expect(found(parse(valid), ['zzz'])).rejects.toThrow(/task "zzz" is not in/);
    await expect(found(parse(valid), ['untested'])).rejects.toThrow(/tasks\/untested has no tests\/test\.sh/);
    await expect(found(parse({ ...valid, datasets: [{ path: 'nope' }] }), ['a'])).rejects.toThrow(/nope does not exist/);
  });

  test('have a digest of everything and one of what the model sees', async () => {
    const [a, b, other] = ['a', 'b', 'other'].map((id) => join(dir, 'tasks', id)) as [string, string, string];
    expect(await taskDigest(a)).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(await taskDigest(a)).not.toBe(await taskDigest(b));
    expect(await taskContentDigest(a)).toBe(await taskContentDigest(b));
    expect(await taskContentDigest(a)).not.toBe(await taskContentDigest(other));
    const before = await taskContentDigest(b);
    await write('tasks/b/tests/more', 'x');
    expect(await taskContentDigest(b)).not.toBe(before);
  });
});
