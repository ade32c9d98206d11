import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { baselineReportOf } from '../../core/run/testing/facts.ts';
import { CliError } from '../errors.ts';
import { MAX_INPUT_FILE_BYTES } from './files.ts';
import { buildStartInput, prepareStart, type StartRequest } from './start-input.ts';

const CONFIG = `
[student]
base_model = "s"
[teacher]
model = "t"
[harbor]
job_template = "job.json"
`;
const TEMPLATE = JSON.stringify({ environment: { type: 'docker' }, datasets: [{ path: 'tasks' }] });
const BASELINE = baselineReportOf({ base_model: null, task_ids: ['twin'], trials: 3, solve_rate: 1, executed_trials: 3 });

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'start-input-'));
  for (const [id, content] of Object.entries({ a: 'do a', b: 'do b', c: 'do c', twin: 'do a' })) writeTask(id, content);
  writeTask('untested', 'do it');
  rmSync(join(root, 'tasks/untested/tests'), { recursive: true });
  write('job.json', TEMPLATE);
  write('baseline.json', JSON.stringify(BASELINE));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  return full;
}

function writeTask(id: string, instruction: string): void {
  write(`tasks/${id}/task.toml`, `name = "${id}"\n`);
  write(`tasks/${id}/instruction.md`, instruction);
  write(`tasks/${id}/environment/data`, '7\n');
  write(`tasks/${id}/tests/test.sh`, 'exit 0\n');
}

type Files = { config?: string; tasks?: string; holdout?: string };
type Extra = Partial<StartRequest>;

function build(files: Files, extra: Extra = {}) {
  const config = write('run.toml', files.config ?? CONFIG);
  const tasks = write('train.json', files.tasks ?? '["a", "b"]');
  const holdout = write('holdout.json', files.holdout ?? '["c"]');
  return buildStartInput({ agent: 'turn', config, tasks, holdout, ...extra }, root);
}

async function problemsOf(files: Files, extra: Extra = {}): Promise<string> {
  const error = await build(files, extra).then(
    () => null,
    (problem: unknown) => problem,
  );
  expect(error).toBeInstanceOf(CliError);
  expect((error as CliError).exitCode).toBe(2);
  return (error as CliError).message;
}

test('puts the contents of the files into the input, and only what was said', async () => {
  const { input, config } = await build({}, { yes: true, runDir: 'there' });
  expect(input).toEqual({ agent: 'turn', config: CONFIG, taskIds: ['a', 'b'], holdoutTaskIds: ['c'], yes: true, runDir: 'there' });
  expect(config.train.steps).toBe(40);
});

test.each<[name: string, files: Files, extra: Extra, message: RegExp]>([
  ['a missing config', {}, { config: 'no/such.toml' }, /^--config no\/such\.toml: there is no such file$/],
  ['a folder as config', {}, { config: tmpdir() }, /^--config \S+: is not a file$/],
  ['a file that does not fit', { config: `# ${'x'.repeat(MAX_INPUT_FILE_BYTES)}` }, {}, /run\.toml: has \d+ bytes; at most \d+ fit/],
  ['broken TOML', { config: '[student' }, {}, /run\.toml: not valid TOML/],
  ['an unknown key', { config: `${CONFIG}\n[train]\nstep = 3` }, {}, /run\.toml: train\.step is not a known key$/],
  [
    'a key for what is not built',
    { config: `${CONFIG}\n[train]\noverlap_steps = 1` },
    {},
    /train\.overlap_steps asks for something this version cannot do/,
  ],
  [
    'trajectories that are not there',
    { config: `${CONFIG}\n[warmup]\nsteps = 1\ntrajectories_from = ".stillroom/no-such-run"` },
    {},
    /^warmup\.trajectories_from: \.stillroom\/no-such-run: there is no such run folder or file/,
  ],
  ['task ids that are not JSON', { tasks: 'a, b' }, {}, /^--tasks \S+train\.json: not JSON/],
  ['task ids of another shape', { tasks: '{"a": 1}' }, {}, /train\.json: must be a JSON array of task ids/],
  ['a task id that is a number', { tasks: '["a", 7]' }, {}, /train\.json: must be a JSON array of task ids \(strings\): entry 1: /],
  ['no task ids', { holdout: '[]' }, {}, /^--holdout \S+holdout\.json: names no task$/],
  ['a task twice in a split', { tasks: '["a", "b", "a"]' }, {}, /^--tasks \S+: names a more than once/],
  ['splits that overlap by id', { holdout: '["b", "c"]' }, {}, /^--tasks and --holdout overlap: b is in both/],
  ['splits that overlap by content', { holdout: '["twin"]' }, {}, /overlap by content: twin = a/],
  ['a task that is nowhere', { tasks: '["a", "gone"]' }, {}, /task "gone" is not in the job template's tasks or datasets/],
  ['a task folder without tests', { tasks: '["untested"]' }, {}, /untested has no tests\/test\.sh/],
  ['a missing job template', { config: CONFIG.replace('job.json', 'none.json') }, {}, /none\.json: cannot be read/],
  [
    'a baseline that is not there',
    { config: `${CONFIG}\n[eval]\nteacher_baseline_from = "gone.json"` },
    {},
    /^eval\.teacher_baseline_from: gone\.json: .*not there \(import_missing_file\)$/,
  ],
  [
    'a baseline outside of the project',
    { config: `${CONFIG}\n[eval]\nstudent_baseline_from = "../s.json"` },
    {},
    /^eval\.student_baseline_from: \.\.\/s\.json: must be below the project root/,
  ],
  [
    'baselines that do not fit, both at once',
    { config: `${CONFIG}\n[eval]\nteacher_baseline_from = "baseline.json"\nstudent_baseline_from = "tasks"` },
    {},
    /^2 things are wrong:\n +eval\.teacher_baseline_from: baseline\.json: .*other tasks.*\n +eval\.student_baseline_from: tasks: is a folder; name the/,
  ],
  ['a run folder outside of the project', {}, { runDir: '../elsewhere' }, /^--run-dir \.\.\/elsewhere: must be below the project root/],
  ['an agent that does not exist', {}, { agent: 'nobody' }, /^--agent: there is no agent nobody$/],
  ["harbor's name of the built-in agent", {}, { agent: 'terminus-2' }, /^--agent: no agent is stored as terminus-2; .* built in, as pi$/],
  [
    'a version of the built-in agent',
    {},
    { agent: 'turn@v9' },
    /^--agent: agent turn has no version v9: turn is always the built-in agent$/,
  ],
  [
    'compaction by an agent that cannot',
    { config: `${CONFIG}\n[rollout]\ncompaction = true\n` },
    { agent: 'turn' },
    /^--agent: rollout\.compaction is true, and the agent turn cannot summarise its history/,
  ],
])('refuses %s', async (_, files, extra, message) => {
  expect(await problemsOf(files, extra)).toMatch(message);
});

test('an empty name is a mistake in the config, not something that is not built', async () => {
  const config = `${CONFIG.replace('[teacher]', '[teacher]\ntokenizer = ""')}\n[train]\noverlap_steps = 1`;
  await expect(build({ config })).rejects.toMatchObject({ problems: [{ kind: 'not_built' }, { kind: 'config_invalid' }] });
});

test('a baseline that fits, and files that only the workers have, are no problem', async () => {
  const config = `${CONFIG}\n[eval]\nteacher_baseline_from = "baseline.json"`;
  expect((await build({ config, holdout: '["twin"]', tasks: '["b"]' })).input.config).toBe(config);
  expect((await build({ config }, { tasksElsewhere: true })).input.config).toBe(config);
});

test('unbounded spend needs a person at the terminal', async () => {
  const request = {
    agent: 'turn',
    config: write('run.toml', CONFIG),
    tasks: write('train.json', '["a"]'),
    holdout: write('holdout.json', '["c"]'),
  };
  await expect(prepareStart(request, root, false)).rejects.toMatchObject({ problems: [{ kind: 'unbounded_spend' }], exitCode: 2 });
  expect((await prepareStart(request, root, true)).input.taskIds).toEqual(['a']);
});

test('a stored agent is looked up, one of another runtime is refused', async () => {
  write('.stillroom/harnesses/mine/v1/doc.json', '{"runtime": "turn"}');
  write('.stillroom/harnesses/kit/v1/doc.json', '{"runtime": "kit"}');
  write('.stillroom/harnesses/torn/v1/doc.json', '{"runtime"');
  expect((await build({}, { agent: 'mine@v1' })).input.agent).toBe('mine@v1');
  expect(await problemsOf({}, { agent: 'kit' })).toMatch(
    /^--agent: agent kit v1 runs on "kit"; runtimes here: turn, terminus-2, import, installed$/,
  );
  expect(await problemsOf({}, { agent: 'torn' })).toMatch(/doc\.json is not a description of an agent/);
});

test('what it starts from is looked up in the store, and refused before anything is started', async () => {
  const record = {
    executionId: 'e',
    config: { student: { base_model: 's', lora_rank: 32 }, rollout: { renderers: {} } },
    train: [{ id: 'b' }],
    trainContents: ['db'],
  };
  write('.stillroom/blobs/runs/old/files/run.json', JSON.stringify(record));
  const state = { name: 'step-0004', path: 'tinker://m/weights/step-0004', updates: 4, savedAtMs: 1 };
  write('.stillroom/blobs/runs/old/states/000000', JSON.stringify(state));
  const { input, branch } = await build({}, { from: 'old' });
  expect(input.from).toBe('old');
  expect(branch).toMatchObject({ statePath: state.path, source: { runId: 'old', state: 'step-0004' } });
  const refused = async (from: string, files: Files = {}, extra: Extra = {}) => problemsOf(files, { from, ...extra });
  expect(await refused('nobody')).toBe('--from nobody: the store knows no run nobody');
  expect(await refused('old', { config: CONFIG.replace('"s"', '"z"') })).toMatch(
    /^--from old: student\.base_model is "z" and was "s" in old/,
  );
  expect(await refused('old', { tasks: '["a"]', holdout: '["b"]' })).toMatch(/^--from old: .*held-out tasks: b \(run old\)/);
  expect(await refused('tinker://m/x', {}, { tasksElsewhere: true })).toMatch(/^--from tinker:\/\/m\/x: .*names no training state/);
  // Only the workers have the store: they tell.
  expect(await build({}, { from: 'nobody', tasksElsewhere: true })).toMatchObject({ input: { from: 'nobody' }, branch: null });
});

test('a backend that is named wins over the config', async () => {
  const config = CONFIG.replace('[harbor]', '[harbor]\nbackend = "e2b"');
  expect(await problemsOf({ config })).toMatch(/harbor\.backend/);
  expect((await build({ config }, { backend: 'local' })).config.harbor.backend).toBe('local');
});

test('tells everything that is wrong at once', async () => {
  const message = await problemsOf({ config: '[student]\nbase_model = 7\n', tasks: '[]', holdout: '["c", "c"]' });
  expect(message).toMatch(/^\d+ things are wrong:\n/);
  for (const part of ['student.base_model = 7', '[teacher] is missing', 'train.json', 'holdout.json']) expect(message).toContain(part);
});

test("does not look for tasks that are said to be on the workers' machines", async () => {
  const { input } = await build({ tasks: '["elsewhere"]' }, { tasksElsewhere: true });
  expect(input.taskIds).toEqual(['elsewhere']);
});
