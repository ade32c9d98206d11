import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SamplerPath } from '../../core/ids.ts';
import { TinkerClient } from '../../services/tinker/index.ts';
import { TRAINER_KEY } from '../support/product.ts';
import { makeOwnTasks } from './own-tasks.ts';
import { KeysSetting, type Observed, quickTasks } from './setting.ts';

/** One run on tasks of its own, scored by a teacher's checkpoint: a task without a sandbox, one with a slow model, one too long. */
const TEACHER = 'stillroom/tiny-teacher';
const KEYS = {
  'harbor.reward_key': 'score',
  'harbor.retries': 2,
  'rollout.episode_timeout_s': 2.5,
  'train.steps': 2,
  'train.tasks_per_batch': 5,
  'train.group_size': 1,
  'train.advantage_clip': null,
  'train.center_advantages': true,
  'train.max_datum_tokens': 64,
  'train.trial_concurrency': 1,
  'train.log_sample_rollouts': 0,
  'gate.k': 1,
};

const [fine, other, another, broken, slow] = quickTasks('train', /^(move|copy-\w+-to-\w+-and)-/, 5) as [
  string,
  string,
  string,
  string,
  string,
];
const held = quickTasks('holdout', /^delete-\w{3}-\w{6}$/, 2);

let setting: KeysSetting;
let checkpoint: SamplerPath;
let run: Observed;
let own: ReturnType<typeof makeOwnTasks>;
beforeAll(async () => {
  setting = await KeysSetting.make();
  checkpoint = await teacherCheckpoint(String(setting.product.stack.trainerUrl));
  // Its sandbox cannot start: nothing may be written where the system lies.
  const changes = [{ from: fine }, { from: other }, { from: another }, { from: broken, workdir: '/usr/app' }, { from: slow }];
  own = makeOwnTasks('own', [...changes, ...held.map((from) => ({ from }))]);
  run = await setting.run({
    runId: 'keys-own-tasks',
    keys: { ...KEYS, 'harbor.job_template': own.jobTemplate, 'teacher.checkpoint': checkpoint },
    taskIds: own.ids.slice(0, 5),
    holdoutTaskIds: own.ids.slice(5),
    faults: { delayMs: (body) => (textOf(body).startsWith(String(own.instructions[4])) && body.prompt_logprobs === false ? 5_000 : 0) },
  });
}, 180_000);
afterAll(() => setting?.[Symbol.asyncDispose](), 60_000);

/** Weights of the teacher that are saved as a path of their own. */
async function teacherCheckpoint(baseUrl: string): Promise<SamplerPath> {
  await using client = await TinkerClient.connect({ baseUrl, apiKey: TRAINER_KEY });
  const { modelId, nextSeqId } = await client.createModel({ baseModel: TEACHER, rank: 4, seed: 1 });
  return await client.training(modelId, { nextSeqId }).saveForSampler('teacher');
}

function textOf(body: Record<string, unknown>): string {
  const { chunks } = body.prompt as { chunks: readonly { tokens: readonly number[] }[] };
  return String.fromCharCode(...chunks.flatMap(({ tokens }) => tokens));
}

const trialsAt = (task: number) => run.steps.flatMap(({ trials }) => trials.filter(({ spec }) => spec.task.id === own.ids[task]));

describe('teacher', () => {
  it('checkpoint: scores and the teacher’s own episodes come from it', () => {
    const scores = run.traffic.samples.filter(({ scores }) => scores).map(({ weights }) => weights);
    expect(scores.filter((weights) => weights === checkpoint).length).toBeGreaterThanOrEqual(
      run.rows.reduce((sum, row) => sum + row.built_datums, 0),
    );
    expect(run.traffic.samples.map(({ weights }) => weights)).not.toContain(TEACHER);
    expect(run.result.evaluations[0]).toMatchObject({ label: 'teacher', model: { kind: 'sampler', path: checkpoint } });
  });
});

describe('harbor', () => {
  it('job_template', () => {
    const paths = run.steps.flatMap(({ trials }) => trials.map(({ spec }) => spec.task.path));
    expect(new Set(paths)).toEqual(new Set(own.ids.slice(0, 5).map((id) => `.stillroom/test-keys/own/tasks/${id}`)));
  });

  it('reward_key', () => {
    const rewards = run.steps.flatMap(({ trials }) => trials.flatMap(({ summary }) => (summary.executed ? [summary.reward] : [])));
    expect(rewards.length).toBeGreaterThan(4);
    expect(new Set(rewards)).toEqual(new Set([0.5]));
  });

  it('reward_key that no grader reports', async () => {
    const keys = { 'harbor.job_template': own.jobTemplate, 'harbor.reward_key': 'grade' };
    const failure = await setting.failure({ runId: 'keys-reward', keys, taskIds: own.ids.slice(0, 5), holdoutTaskIds: own.ids.slice(5) });
    expect(failure).toMatchObject({ type: 'PreflightFailed', message: expect.stringMatching(/no reward "grade" \(only reward, score\)/) });
  });

  it('retries', () => {
    const ids = trialsAt(3).map(({ summary }) => summary.trialId.replace(/^.*-s\d+-\d+-/, ''));
    expect(ids).toEqual(['0', '0-r1', '0-r2', '0', '0-r1', '0-r2']);
    expect(run.rows.map(({ infra_failed_trials }) => infra_failed_trials)).toEqual([1, 1]);
  });
});

describe('rollout', () => {
  it('episode_timeout_s', () => {
    expect(trialsAt(4)).toHaveLength(2);
    for (const { summary } of trialsAt(4)) expect(summary).toMatchObject({ exceptionType: 'AgentTimeoutError', stopReason: 'budget' });
    for (const { stop_reason_counts } of run.rows) expect(stop_reason_counts.budget).toBeGreaterThanOrEqual(1);
  });
});

describe('train', () => {
  it('center_advantages', () => {
    const { advantages } = run.traffic;
    expect(Math.max(...advantages.map(Math.abs))).toBeGreaterThan(0.1);
    for (const { datums } of run.traffic.losses) {
      const sent = datums.flatMap((datum) => [...(datum.lossFnInputs.advantages?.values ?? [])].map(Number)).filter((value) => value !== 0);
      expect(Math.abs(sent.reduce((sum, value) => sum + value, 0) / sent.length)).toBeLessThan(1e-6);
    }
  });

  it('max_datum_tokens', () => {
    expect(run.rows.reduce((sum, row) => sum + row.overlong_drops, 0)).toBeGreaterThan(0);
    expect(run.traffic.sequenceTokens.length).toBeGreaterThan(0);
    expect(Math.max(...run.traffic.sequenceTokens)).toBeLessThanOrEqual(64);
  });

  it('trial_concurrency', () => expect(run.steps.map(({ mostAtOnce }) => mostAtOnce)).toEqual([1, 1]));
  it('num_substeps = 1', () => expect(run.rows.map(({ optimizer_updates }) => optimizer_updates)).toEqual([1, 1]));
  it('log_sample_rollouts', () => expect(run.files.filter((name) => name.startsWith('samples-'))).toEqual([]));
});
