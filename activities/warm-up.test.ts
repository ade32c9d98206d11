import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRunConfig } from '../core/config/index.ts';
import type { BlobRef, TrialId } from '../core/ids.ts';
import { trialOf } from '../core/run/testing/facts.ts';
import type { TrialSummary } from '../core/run/trial.ts';
import type { WarmupRow } from '../core/run/warm-up.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import { RunRecords } from './run-records.ts';
import { CONFIG, failureOf, Project } from './testing/project.ts';
import { createWarmupActivities } from './warm-up.ts';
import { datumsAt, type SetIndex } from './warm-up-set.ts';

let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

const TEACHER = 'stillroom/tiny-teacher';
const warm = (more = '', config = CONFIG) => `${config}[warmup]\nsteps = 2\n${more}`;

function activities() {
  const { records, blobs, objects, folderOf } = project;
  return createWarmupActivities({ records, blobs, objects, folderOf });
}

/** An episode of as many fragments as there are lists: the ids 1 to n as prompt, then 7 sampled. */
async function episode(prompts: readonly number[], sampler = TEACHER, trial = 't'): Promise<BlobRef> {
  const spans = prompts.map((length, callIndex) => ({
    callIndex,
    prompt: Int32Array.from({ length }, (_, i) => 1 + ((i + callIndex) % 100)),
    sampled: Int32Array.of(7),
    logprobs: Float64Array.of(-1),
    stop: 'stop' as const,
    sampler,
  }));
  return project.blobs.of('first').put(encodeEpisode({ trial: trial as TrialId, spans, stopReason: null }));
}

let trialsMade = 0;

/** A trial of its own of the teacher. */
async function trajectory(
  taskId: string,
  more: Partial<TrialSummary> & { prompts?: readonly number[]; sampler?: string } = {},
): Promise<TrialSummary> {
  const { prompts = [3], sampler, ...known } = more;
  const trialId = `${taskId}-w${trialsMade++}` as TrialId;
  const spans = await episode(prompts, sampler, trialId);
  return trialOf({ trialId, taskId, passed: true, executed: true, sampledTokens: 1, spans, ...known });
}

async function kept(played: readonly TrialSummary[], config = warm(), runId = 'first') {
  const { ref: run } = await project.resolve({ config }, { runId, executionId: `e-${runId}` });
  const { list } = await activities().keepTrajectories({ run, trials: await project.kept(run, played), areAll: true });
  return { run, list };
}

describe('what the teacher played', () => {
  it('is kept in the run folder', async () => {
    const played = [
      await trajectory('a'),
      await trajectory('b', { passed: false }),
      await trajectory('b', { executed: false, passed: false }),
    ];
    await kept(played);
    expect(JSON.parse(await readFile(join(project.root, 'runs/first/warmup-trajectories.json'), 'utf8'))).toMatchObject({
      run_id: 'first',
      teacher: { model: TEACHER, checkpoint: null, renderer: 'stillroom_tiny' },
      student_base_model: 'stillroom/tiny-student',
      task_ids: ['a', 'b'],
      trials: played.map(({ taskId, passed, executed, spans }) => ({ task_id: taskId, passed, executed, spans })),
    });
  });
});

it('the books of what it plays stay until it has played all: broken-off trials go on by theirs', async () => {
  const trialId = 'p-w-000-0' as TrialId;
  const { ref: run } = await project.resolve({ config: warm() });
  const book = `runs/first/calls/p-w-001-0/sample/000000`;
  await project.objects.put(book, new Uint8Array());
  const trials = await project.kept(run, [trialOf({ trialId, spans: await episode([3], TEACHER, trialId) })]);
  await activities().keepTrajectories({ run, trials, areAll: false });
  expect(await project.objects.has(book)).toBe(true);
  await activities().keepTrajectories({ run, trials, areAll: true });
  expect(await project.objects.has(book)).toBe(false);
});

describe('the set', () => {
  const config = (more = '') => {
    const parsed = parseRunConfig(warm(more), 'run.toml');
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
    return parsed.config;
  };

  it.each([
    ['passed', 'keep = "passed"\n', 3, "warm-up on 3 sequences of 2 of the teacher's 4 trials"],
    ['all', 'keep = "all"\n', 4, "warm-up on 4 sequences of 3 of the teacher's 4 trials"],
  ])('with keep = %s has the sequences of what is kept', async (_, keep, datums, notice) => {
    const played = [
      await trajectory('a', { prompts: [4, 5] }),
      await trajectory('b', { passed: false, prompts: [6] }),
      await trajectory('b', { prompts: [8] }),
      await trajectory('b', { executed: false, passed: false }),
    ];
    const { run, list } = await kept(played, warm(keep));
    const set = await activities().gatherWarmup({ run, list });
    expect(set).toMatchObject({ datums, notice, updateUsd: 0 });
    const index = JSON.parse(new TextDecoder().decode(await project.blobs.get(set.ref))) as SetIndex;
    const lengths = async (places: number[]) =>
      (await datumsAt(index, places, config(keep), project.blobs)).map(({ tokens }) => tokens.length);
    const all = keep.includes('all') ? [5, 6, 7, 9] : [5, 6, 9];
    expect(await lengths(all.map((_, place) => place))).toEqual(all);
    expect(await lengths([2, 0])).toEqual([all[2], all[0]]);
  });

  it('leaves out and counts what is too long, knows what an update costs, and draws places of it', async () => {
    const limited = warm(
      '',
      CONFIG.replace('tasks_per_batch = 2', 'tasks_per_batch = 2\nmax_datum_tokens = 8').replace(
        '[pricing]',
        '[pricing]\nstudent_train = 250',
      ),
    );
    const played = [await trajectory('a'), await trajectory('a'), await trajectory('b', { prompts: [8] })];
    const { run, list } = await kept(played, limited);
    const set = await activities().gatherWarmup({ run, list });
    expect(set).toMatchObject({ datums: 2, notice: expect.stringMatching(/left out: 1 episodes over train.max_datum_tokens$/) });
    expect(set.updateUsd).toBeCloseTo((2 * 4 * 250) / 1e6);
    expect([...(await activities().drawWarmup({ run, datums: 2, update: 1 }))].sort()).toEqual([0, 1]);
    expect(await activities().drawWarmup({ run, datums: 100, update: 1 })).toHaveLength(2 * 4);
  });

  it('that is empty fails the run by name, with counts and remedies', async () => {
    const none = [await trajectory('a', { passed: false }), await trajectory('b', { executed: false, passed: false })];
    const { run, list } = await kept(none);
    const failure = await failureOf(activities().gatherWarmup({ run, list }));
    expect(failure).toMatchObject({ type: 'NothingToWarmUpOn', nonRetryable: true });
    expect(failure.message).toMatch(
      /of 2 trials of the teacher 1 were executed and 0 passed; warmup\.keep = "passed" keeps 0\. Set warmup\.keep = "all"/,
    );
    expect(failure.message).toContain('warmup.trajectories_from = "runs/first" uses it again');
  });

  it('that no sequence survives says which limit', async () => {
    const { run, list } = await kept([await trajectory('a', { prompts: [1100] })]);
    const failure = await failureOf(activities().gatherWarmup({ run, list }));
    expect(failure.message).toMatch(/1 passed rollout\.context_budget_tokens, 0 passed train\.max_datum_tokens/);
  });

  it("refuses tokens that are not the teacher's", async () => {
    const { run, list } = await kept([await trajectory('a', { sampler: 'step-0001' })]);
    const failure = await failureOf(activities().gatherWarmup({ run, list }));
    expect(failure).toMatchObject({ type: 'TokenError', nonRetryable: true, message: expect.stringMatching(/sampled from step-0001/) });
  });
});

it('appends a line per update', async () => {
  const { run } = await kept([]);
  const row = { update: 1, loss_nats: 2.5 } as WarmupRow;
  await activities().noteWarmup({ run, row });
  await activities().noteWarmup({ run, row: { ...row, update: 2 } });
  const lines = (await readFile(join(project.root, 'runs/first/warmup.jsonl'), 'utf8')).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ update: 1, loss_nats: 2.5 }, { update: 2 }]);
});

describe('trajectories of an earlier run', () => {
  const from = (path: string, more = '') => warm(`trajectories_from = "${path}"\n${more}`);
  const next = (config: string) => project.resolve({ config }, { runId: 'second', executionId: 'e2' });
  beforeEach(async () => {
    await kept([await trajectory('a'), await trajectory('b', { passed: false })]);
  });

  it.each(['runs/first', 'runs/first/warmup-trajectories.json'])(
    'from %s are pinned, then used without a sample, and kept again',
    async (path) => {
      const pinned = await next(from(path, 'keep = "all"\n'));
      expect(pinned.plan.warmup).toEqual({ steps: 2, rolloutsPerTask: 1, loaded: true });
      expect(pinned.fileHashes.warmupTrajectories).toMatch(/^[0-9a-f]{64}$/);
      const original = await readFile(join(project.root, 'runs/first/warmup-trajectories.json'), 'utf8');
      await writeFile(join(project.root, 'runs/first/warmup-trajectories.json'), 'changed later');
      project = Object.assign(project, { records: new RunRecords(project.blobs) });
      expect(await activities().gatherWarmup({ run: pinned.ref, list: null })).toMatchObject({
        datums: 2,
        notice: `warm-up on 2 sequences of 2 of the teacher's 2 trials from ${path}`,
      });
      expect(await readFile(join(project.root, 'runs/second/warmup-trajectories.json'), 'utf8')).toBe(original);
    },
  );

  it('of another agent say so', async () => {
    await project.harnesses.save({ runtime: 'turn', kwargs: { stop_word: 'bye' } }, { name: 'mine', key: 'k' });
    const { ref: run } = await project.resolve({ agent: 'mine', config: from('runs/first') }, { runId: 'second', executionId: 'e2' });
    expect((await activities().gatherWarmup({ run, list: null })).notice).toMatch(/played by another agent: turn@builtin/);
  });

  it('are not read where no warm-up is planned', async () => {
    const off = `${CONFIG}[warmup]\nsteps = 0\ntrajectories_from = "nowhere"\n`;
    expect((await next(off)).fileHashes).not.toHaveProperty('warmupTrajectories');
  });

  const refused: [string, () => Promise<string>, RegExp][] = [
    ['that are not there', async () => from('runs/none'), /there is no run folder or file runs\/none below the project root/],
    ['outside the root', async () => from('../first'), /is not below the project root/],
    [
      'of a run without a warm-up',
      async () => {
        await mkdir(join(project.root, 'runs/cold'));
        return from('runs/cold');
      },
      /there is no file runs\/cold\/warmup-trajectories\.json/,
    ],
    ['that are another file', async () => from('job.json'), /job\.json: not the trajectories of a warm-up/],
    ['of another teacher', async () => from('runs/first').replaceAll(TEACHER, 'stillroom/other'), /teacher's model/],
    [
      'of tasks that changed',
      async () => {
        await project.file('tasks/a/instruction.md', 'something else');
        return from('runs/first');
      },
      /tasks changed since its episodes were played: a/,
    ],
    [
      'that list a trial twice',
      async () => {
        const file = join(project.root, 'runs/first/warmup-trajectories.json');
        const kept = JSON.parse(await readFile(file, 'utf8'));
        await writeFile(file, JSON.stringify({ ...kept, trials: [...kept.trials, kept.trials[0]] }));
        return from('runs/first');
      },
      /lists a trial twice/,
    ],
    [
      "whose spans are another trial's",
      async () => {
        const file = join(project.root, 'runs/first/warmup-trajectories.json');
        const kept = JSON.parse(await readFile(file, 'utf8'));
        const spans = await episode([3], TEACHER, 'another');
        await writeFile(file, JSON.stringify({ ...kept, trials: [{ ...kept.trials[0], spans }] }));
        return from('runs/first');
      },
      /its spans are those of trial another/,
    ],
    [
      'whose blobs are gone',
      async () => {
        const kept = JSON.parse(await readFile(join(project.root, 'runs/first/warmup-trajectories.json'), 'utf8'));
        const [, digest = ''] = String(kept.trials[0].spans).split('sha256:');
        await rm(join(project.root, 'blobs/runs/first/blobs', digest.slice(0, 2), digest));
        return from('runs/first');
      },
      /no blob first\/sha256:/,
    ],
  ];
  it.each(refused)('%s are refused by the name of the key', async (_, config, message) => {
    const failure = await failureOf(next(await config()));
    expect(failure).toMatchObject({ type: 'BadRunInput', nonRetryable: true });
    expect(failure.message).toMatch(/^warmup\.trajectories_from: /);
    expect(failure.message).toMatch(message);
    expect(await project.names('runs/second')).toEqual([]);
  });

  it('of which none is kept are refused too', async () => {
    await kept([await trajectory('a', { passed: false })], warm(), 'third');
    const failure = await failureOf(next(from('runs/third')));
    expect(failure.message).toMatch(
      /^warmup\.trajectories_from: runs\/third: of 1 trials .* Set warmup\.keep = "all", other warmup\.trajectories_from/,
    );
  });

  it('of held-out tasks are refused', async () => {
    const config = from('runs/first');
    const failure = await failureOf(
      project.resolve({ config, taskIds: ['a', 'y'], holdoutTaskIds: ['b'] }, { runId: 'second', executionId: 'e2' }),
    );
    expect(failure.message).toMatch(/it holds episodes of held-out tasks: b/);
  });
});
