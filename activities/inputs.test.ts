import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartInput } from '../core/run/start-input.ts';
import { sha256 } from './digest.ts';
import { RunRecords } from './run-records.ts';
import { CONFIG, failureOf, Project, TEMPLATE } from './testing/project.ts';

let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

describe('a run that can start', () => {
  it('is pinned by its content, and its folder says so', async () => {
    const pinned = await project.resolve();
    expect(pinned).toMatchObject({ runId: 'first', runDir: 'runs/first', backend: 'local', promote: false, yes: false });
    const record = await project.records.load(pinned.ref);
    expect([pinned.train.count, pinned.holdout.count]).toEqual([2, 2]);
    expect(record.train.map(({ id, path }) => ({ id, path }))).toEqual([
      { id: 'a', path: 'tasks/a' },
      { id: 'b', path: 'tasks/b' },
    ]);
    expect(record.holdout.map(({ digest }) => digest)).toEqual([
      expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    ]);
    expect(pinned.fileHashes).toEqual({
      config: sha256(CONFIG),
      taskIds: sha256('["a", "b"]'),
      holdoutTaskIds: sha256('["x", "y"]'),
      jobTemplate: sha256(JSON.stringify(TEMPLATE)),
    });
    expect(JSON.parse(await readFile(join(project.root, 'runs/first/run.json'), 'utf8'))).toMatchObject({
      runId: 'first',
      executionId: 'e1',
    });
  });

  it.each<[string, Partial<StartInput>]>([
    ['config as text', { config: CONFIG }],
    ['config from a path with = in it', { config: 'lr=1e-4.toml' }],
    ['splits as arrays', { taskIds: ['a', 'b'], holdoutTaskIds: ['x', 'y'] }],
    ['a folder of its own choice', { runDir: 'elsewhere/deep' }],
    ['a name that only begins with dots', { runDir: '..runs/first' }],
  ])('with %s, comes to the same pin', async (_, input) => {
    await project.file('lr=1e-4.toml', CONFIG);
    const pinned = await project.resolve(input);
    const plain = await project.resolve({}, { runId: 'other', executionId: 'e2' });
    expect(pinned).toMatchObject({ plan: plain.plan, protocolHash: plain.protocolHash, train: { count: plain.train.count } });
    expect(pinned.runDir).toBe(input.runDir ?? 'runs/first');
  });

  it('is not changed by files that change later: its activities read the record', async () => {
    const pinned = await project.resolve();
    await project.file('run.toml', CONFIG.replace('steps = 3', 'steps = 300'));
    await project.file('train.json', '["x"]');
    await project.file('job.json', '{}');
    const record = await new RunRecords(project.blobs).load(pinned.ref);
    expect(record.config.train.steps).toBe(3);
    expect(record.jobTemplate).toEqual(TEMPLATE);
    const drawn = await project.inputs(new RunRecords(project.blobs)).drawStepTasks({ run: pinned.ref, step: 1 });
    expect(drawn.map(({ id }) => id).sort()).toEqual(['a', 'b']);
  });

  it('has fixed training tasks for its interim evaluations, other ones than another run', async () => {
    const ids = Array.from({ length: 8 }, (_, index) => `t${index}`);
    for (const id of ids) await project.task(id);
    const of = async (runId: string, tasks: number) => {
      const config = `${CONFIG}[eval]\nevery = 2\ntasks = ${tasks}\nk = 5\n`;
      const { ref, plan } = await project.resolve({ config, taskIds: ids }, { runId, executionId: `e-${runId}` });
      expect(plan).toMatchObject({ interim: { every: 2, tasks, k: 5 }, deferBaselines: false, gateK: 3 });
      const draw = async () => {
        const list = await project.inputs().drawInterimTasks({ run: ref });
        return (await project.inputs().listTasks({ tasks: list })).map(({ id }) => id);
      };
      const drawn = await draw();
      expect(await draw()).toEqual(drawn);
      return drawn;
    };
    const drawn = await of('r1', 3);
    expect(new Set(drawn).size).toBe(3);
    expect(ids).toEqual(expect.arrayContaining(drawn));
    expect(await of('r2', 3)).not.toEqual(drawn);
    expect((await of('r3', 12)).toSorted()).toEqual(ids);
  });

  it('refuses tasks that are no longer what it pinned, graders included', async () => {
    const { ref: run, holdout } = await project.resolve();
    const activities = project.inputs(new RunRecords(project.blobs));
    await activities.checkTasks({ tasks: holdout });
    await project.file('tasks/x/tests/test.sh', 'echo 1 > "$LOGS_DIR/verifier/reward.txt"\n');
    const changed = { type: 'TaskChanged', nonRetryable: true };
    for (const check of ['checkTasks', 'listTasks'] as const)
      expect(await failureOf(activities[check]({ tasks: holdout }))).toMatchObject({ ...changed, message: expect.stringMatching(/: x\./) });
    expect(await activities.drawStepTasks({ run, step: 1 })).toHaveLength(2);
    await project.file('tasks/a/instruction.md', 'something else');
    expect(await failureOf(activities.drawStepTasks({ run, step: 1 }))).toMatchObject(changed);
  });

  it('may be started with other sandboxes than its config names', async () => {
    await project.file('run.toml', CONFIG.replace('[harbor]', '[harbor]\nbackend = "e2b"'));
    expect((await project.resolve({ backend: 'local' })).backend).toBe('local');
  });

  it('uses a stored agent by version, pinned with what it was told', async () => {
    for (const stop_word of ['bye', 'ciao'])
      await project.harnesses.save({ runtime: 'turn', kwargs: { stop_word } }, { name: 'mine', key: stop_word });
    const [first, champion] = [await project.resolve({ agent: 'mine@v1' }), await project.resolve({ agent: 'mine' }, { runId: 'second' })];
    expect(first.agent).toMatchObject({ name: 'mine', ref: 'v1', kwargs: { stop_word: 'bye' } });
    expect(champion.agent).toMatchObject({ ref: 'v2', runtime: 'turn', kwargs: { stop_word: 'ciao' } });
    expect(champion.agent.hash).not.toBe(first.agent.hash);
    expect(champion.protocolHash).not.toBe(first.protocolHash);
  });

  it('warns of what is allowed but worth knowing', async () => {
    expect((await project.resolve()).warnings).toEqual([]);
    await project.file('run.toml', `${CONFIG.replace('[sampling]', '[sampling]\ntemperature = 0.5')}`);
    await project.file('job.json', JSON.stringify({ ...TEMPLATE, environment: { ...TEMPLATE.environment, kwargs: { mode: 'plain' } } }));
    const { warnings } = await project.resolve({}, { runId: 'second' });
    expect(warnings).toEqual([expect.stringMatching(/^sampling.temperature is 0.5/), expect.stringMatching(/sandboxes are plain/)]);
  });

  it('warns of a limit per trial that cannot pay for one call', async () => {
    const prices = ['student_prefill', 'student_train', 'teacher_prefill', 'teacher_sample'].map((meter) => `${meter} = 1\n`).join('');
    const warned = async (usd: number, runId: string) => {
      await project.file('run.toml', `${CONFIG}${prices}\n[budget]\nmax_usd_per_trial = ${usd}\n`);
      return (await project.resolve({}, { runId })).warnings.filter((warning) => warning.startsWith('budget.'));
    };
    expect(await warned(1, 'enough')).toEqual([]);
    expect(await warned(1e-12, 'small')).toEqual([expect.stringMatching(/at most 0 sampled tokens/)]);
  });

  it('is estimated from its record, unpriced meters by name', async () => {
    const { ref } = await project.resolve();
    const estimate = await project.inputs().estimateRun({ run: ref });
    expect(estimate).toMatchObject({ fullyPriced: false, trainEpisodes: 3 * 2 * 4 });
    expect(estimate.unpricedMeters).toContain('teacher_sample');
    expect(estimate.unpricedMeters).not.toContain('student_sample');
  });

  it.each([
    ['task content', async () => project.task('x', { content: 'other' })],
    ['sampling', async () => project.file('run.toml', CONFIG.replace('max_tokens = 28', 'max_tokens = 20'))],
    ['turns', async () => project.file('run.toml', CONFIG.replace('[rollout]', '[rollout]\nmax_turns = 7'))],
    ['attempts', async () => project.file('run.toml', `${CONFIG}[gate]\nk = 9\n`)],
  ])('is judged by another protocol once %s changes', async (_, change) => {
    const before = await project.resolve();
    await change();
    const after = await project.resolve({}, { runId: 'second', executionId: 'e2' });
    expect(after.protocolHash).not.toBe(before.protocolHash);
  });
});

const broken = (text: string) => ({ config: `${CONFIG}${text}` });

describe('what a run cannot start from', () => {
  it.each<[string, Partial<StartInput>, RegExp]>([
    ['a config that is not there', { config: 'no.toml' }, /^config: there is no file no\.toml below the project root$/],
    ['a config outside the root', { config: '../run.toml' }, /^config: \.\.\/run\.toml is not below the project root/],
    ['an absolute path', { config: '/etc/hostname' }, /^config: \/etc\/hostname is not below the project root/],
    ['a folder as config', { config: 'tasks' }, /^config: tasks is not a file$/],
    ['a path through a file', { config: 'run.toml/x' }, /^config: .*run\.toml\/x cannot be used/],
    ['a path no system takes', { config: 'a\0b' }, /^config: /],
    ['a path that is too long', { config: 'x'.repeat(5000) }, /^config: .*cannot be used/s],
    ['broken TOML', broken('[train\n'), /^config: config: not valid TOML: /],
    ['broken TOML in a file', { config: 'broken.toml' }, /^config: broken\.toml: not valid TOML: /],
    ['one line that was cut', { config: 'student = 1' }, /^config: config: .*student/],
    ['an unknown key', broken('[gate]\nkk = 3\n'), /^config: config: gate\.kk is not a known key$/],
    ['an unknown section', broken('[gates]\nk = 3\n'), /^config: config: gates is not a section/],
    ['openai_compat', { config: openaiCompat() }, /^config: config: teacher\.backend asks for something this version cannot do/],
    ['W&B', broken('[wandb]\nenabled = true\n'), /^config: config: wandb\.enabled asks for something this version cannot do/],
    [
      'overlapping steps',
      { config: CONFIG.replace('steps = 3', 'steps = 3\noverlap_steps = 1') },
      /^config: config: train\.overlap_steps asks for/,
    ],
    ['e2b in the config', { config: CONFIG.replace('[harbor]', '[harbor]\nbackend = "e2b"') }, /^config: config: harbor\.backend asks for/],
    ['e2b in the input', { backend: 'e2b' }, /^backend: e2b sandboxes are not built yet/],
    ['a version of the built-in agent', { agent: 'pi@v1' }, /^agent: agent pi has no version v1: pi is always the built-in agent$/],
    [
      'compaction by an agent that cannot',
      { config: CONFIG.replace('[rollout]', '[rollout]\ncompaction = true') },
      /^agent: rollout\.compaction is true, and the agent turn cannot summarise its history/,
    ],
    ['an unknown agent', { agent: 'mine@v3' }, /^agent: there is no agent mine$/],
    ['a run to start from that never was', { from: 'other' }, /^from: the store knows no run other$/],
    ['weights to start from that cannot be trained', { from: 'tinker://m/sampler_weights/x' }, /^from: .*sampled from, not trained on/],
    [
      'a warm-up of trained weights',
      { from: 'tinker://m/weights/x', config: `${CONFIG}[warmup]\nsteps = 2\n` },
      /^from: warmup\.steps is 2/,
    ],
    ['task ids that are not there', { taskIds: 'no.json' }, /^taskIds: there is no file no\.json below the project root$/],
    ['task ids outside the root', { holdoutTaskIds: '../../x.json' }, /^holdoutTaskIds: \.\.\/\.\.\/x\.json is not below the project root/],
    ['task ids by a link that leads out', { taskIds: 'link.json' }, /^taskIds: link\.json is not below the project root/],
    ['task ids in a linked folder', { taskIds: 'linked/ids.json' }, /^taskIds: linked\/ids\.json is not below the project root/],
    ['task ids that are not JSON', { taskIds: 'run.toml' }, /^taskIds: not JSON: /],
    ['task ids of another shape', { taskIds: 'job.json' }, /^taskIds: must be a JSON array of task ids \(strings\): /],
    ['no task ids', { taskIds: 'none.json' }, /^taskIds: names no task$/],
    ['no held-out ids', { holdoutTaskIds: [] }, /^holdoutTaskIds: names no task$/],
    ['a task twice', { taskIds: ['a', 'b', 'a'] }, /^taskIds: names a more than once/],
    ['a held-out task twice', { holdoutTaskIds: ['x', 'x'] }, /^holdoutTaskIds: names x more than once/],
    ['splits that share an id', { holdoutTaskIds: ['x', 'a'] }, /^holdoutTaskIds: task a is in the training split too$/],
    ['splits that share content', { holdoutTaskIds: ['x', 'twin'] }, /^holdoutTaskIds: task twin has the same content as training task a$/],
    ['an unknown task', { taskIds: ['a', 'nowhere'] }, /^taskIds: task "nowhere" is not in the job template's/],
    ['a task that is a path', { taskIds: ['../tasks/a'] }, /^taskIds: task "\.\.\/tasks\/a" is not in/],
    ['a task without tests', { taskIds: ['a', 'untested'] }, /^taskIds: task folder .*untested has no tests\/test\.sh/],
    ['a held-out task without tests', { holdoutTaskIds: ['untested'] }, /^holdoutTaskIds: task folder .*untested has no tests\/test\.sh/],
    ['no job template', template('no.json'), /^harbor\.job_template: there is no file no\.json below the project root$/],
    ['a job template outside', template('../job.json'), /^harbor\.job_template: \.\.\/job\.json is not below the project root/],
    ['a job template that is not JSON', template('run.toml'), /^harbor\.job_template: run\.toml: not JSON/],
    ['a job template with agents', template('agents.json'), /^harbor\.job_template: agents\.json: agents: must not be set/],
    ['a job template with an unknown key', template('unknown.json'), /^harbor\.job_template: unknown\.json: .*n_trials/],
    [
      'a job template without its dataset',
      template('dataset.json'),
      /^harbor\.job_template: datasets\.0: path: folder .*gone does not exist/,
    ],
    ['a folder outside the root', { runDir: '../out' }, /^runDir: \.\.\/out is not below the project root/],
    ['the root itself as folder', { runDir: '.' }, /^runDir: \. is not below the project root/],
    ['a folder behind a link that leads out', { runDir: 'linked/run' }, /^runDir: linked\/run is not below the project root/],
    ['a folder that is a file', { runDir: 'run.toml' }, /^runDir: run\.toml cannot be used: /],
    ['a folder in a file', { runDir: 'run.toml/run' }, /^runDir: run\.toml\/run cannot be used: /],
    ['a folder with other things in it', { runDir: 'tasks' }, /^runDir: tasks holds other files already/],
  ])('%s', async (_, input, message) => {
    await project.task('twin', { content: 'a' });
    await project.task('untested', { testScript: null });
    await project.file('broken.toml', 'steps = \n');
    await project.file('none.json', '[]');
    await project.file('agents.json', JSON.stringify({ ...TEMPLATE, agents: [] }));
    await project.file('unknown.json', JSON.stringify({ ...TEMPLATE, n_trials: 3 }));
    await project.file('dataset.json', JSON.stringify({ ...TEMPLATE, datasets: [{ path: 'gone' }] }));
    const outside = await mkdtemp(join(tmpdir(), 'stillroom-outside-'));
    await writeFile(join(outside, 'ids.json'), '["a"]');
    await symlink(join(outside, 'ids.json'), join(project.root, 'link.json'));
    await symlink(outside, join(project.root, 'linked'));
    const before = await project.names('.');
    try {
      const failure = await failureOf(project.resolve(input));
      expect(failure).toMatchObject({ type: 'BadRunInput', nonRetryable: true });
      expect(failure.message).toMatch(message);
      // Nothing half-written: no run folder, no blob, nothing outside.
      expect(await project.names('.')).toEqual(before);
      expect(await project.names('linked')).toEqual(['ids.json']);
    } finally {
      await rm(outside, { recursive: true });
    }
  });

  it('all wrong fields are named at once, with the file', async () => {
    const changes = CONFIG.replace('steps = 3', 'steps = 0\ntopk = "eight"').replace('max_tokens = 28', 'max_tokens = -1');
    await project.file('run.toml', changes);
    const { message } = await failureOf(project.resolve());
    for (const field of ['train.steps', 'train.topk', 'sampling.max_tokens'])
      expect(message).toMatch(new RegExp(`run\\.toml: ${field} = `));
  });

  it('a message that would fill history is cut', async () => {
    const { message } = await failureOf(project.resolve({ agent: 'x'.repeat(100_000) }));
    expect(message.length).toBeLessThan(9_000);
    expect(message).toMatch(/and \d+ characters more$/);
  });
});

function template(path: string): Partial<StartInput> {
  return { config: CONFIG.replace('"job.json"', JSON.stringify(path)) };
}

function openaiCompat(): string {
  const keys = 'backend = "openai_compat"\nendpoint = "http://127.0.0.1:1/v1"\ntokenizer = "t"\nalignment = "chunk"';
  return CONFIG.replace('[teacher]', `[teacher]\n${keys}`);
}
