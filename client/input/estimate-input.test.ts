import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { estimateFiles } from './estimate-input.ts';
import { InputRefused } from './problems.ts';

/** 2 steps × 2 tasks × 2 attempts = 8 training episodes; a teacher's and two student's evaluations of 2 held-out tasks. */
const BASE = {
  student: 'base_model = "s"',
  teacher: 'model = "t"',
  harbor: 'job_template = "nowhere/job.json"',
  train: 'steps = 2\ntasks_per_batch = 2\ngroup_size = 2',
  rollout: 'max_turns = 4',
  gate: 'k = 1',
};

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'estimate-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function write(name: string, text: string): string {
  writeFileSync(join(root, name), text);
  return join(root, name);
}

function filesOf(more: Record<string, string> = {}, train = '["a", "b", "c"]', holdout = '["x", "y"]') {
  const sections = Object.entries({ ...BASE, ...more });
  const toml = sections.map(([name, keys]) => `[${name}]\n${keys}\n`).join('');
  return { config: write('run.toml', toml), tasks: write('train.json', train), holdout: write('holdout.json', holdout) };
}

/*
 * The numbers below are worked out by hand. An episode uses half its turns: with max_turns = 4 two, so it has
 * 2048 + 2 · (512 + 1024) = 5120 tokens of its own, prompts of 3072 + 4608 = 7680 tokens, hence 2560 read again, and 2 · 512 sampled.
 */
type Episodes = readonly [train: number, interim: number, heldOut: number, warmup: number];
type Tokens = readonly [
  studentPrefill: number,
  studentCached: number,
  studentSample: number,
  studentTrain: number,
  teacherPrefill: number,
  teacherCached: number,
  teacherSample: number,
];

test.each<[name: string, more: Record<string, string>, episodes: Episodes, tokens: Tokens]>([
  // 8 + 4 student episodes, 8 scored and 2 played by the teacher
  ['the plain run', {}, [8, 0, 6, 0], [61_440, 30_720, 12_288, 40_960, 51_200, 5_120, 2_048]],
  // the teacher plays 3 tasks × 2 more
  ['a warm-up', { warmup: 'steps = 3\nrollouts_per_task = 2' }, [8, 0, 6, 6], [61_440, 30_720, 12_288, 40_960, 81_920, 20_480, 8_192]],
  [
    'a warm-up on trajectories of an earlier run',
    { warmup: 'steps = 3\ntrajectories_from = "earlier"' },
    [8, 0, 6, 0],
    [61_440, 30_720, 12_288, 40_960, 51_200, 5_120, 2_048],
  ],
  // only the student after training plays the held-out tasks: 8 + 2, and the teacher plays nothing
  [
    'imported baselines',
    { eval: 'teacher_baseline_from = "t.json"\nstudent_baseline_from = "s.json"' },
    [8, 0, 2, 0],
    [51_200, 25_600, 10_240, 40_960, 40_960, 0, 0],
  ],
  // training episodes of one turn: 3584 tokens, one prompt of 3072, so nothing is read again, 512 sampled
  [
    'shorter training episodes',
    { train: `${BASE.train}\nrollout_max_turns = 2` },
    [8, 0, 6, 0],
    [49_152, 10_240, 8_192, 28_672, 38_912, 5_120, 2_048],
  ],
  // each sequence is trained on once per rank
  [
    'top-k distillation',
    { train: `${BASE.train}\nloss = "topk_ce"\ntopk = 3` },
    [8, 0, 6, 0],
    [61_440, 30_720, 12_288, 122_880, 51_200, 5_120, 2_048],
  ],
  // after each of 2 steps the 3 training tasks there are, twice: 12 more student episodes
  ['interim evaluations', { eval: 'every = 1\nk = 2' }, [8, 12, 6, 0], [122_880, 61_440, 24_576, 40_960, 51_200, 5_120, 2_048]],
  // 4 turns of 100 sampled tokens in a budget of 4096: it is full from the second prompt on, 3072 + 3 · 4096 prompt tokens
  [
    'a budget that fills up',
    { rollout: 'max_turns = 8\ncontext_budget_tokens = 4096', sampling: 'max_tokens = 100' },
    [8, 0, 6, 0],
    [49_152, 135_168, 4_800, 32_768, 40_960, 22_528, 800],
  ],
  // a batch holds no task twice: 2 steps × 3 tasks × 2
  [
    'batches larger than the split',
    { train: 'steps = 2\ntasks_per_batch = 9\ngroup_size = 2' },
    [12, 0, 6, 0],
    [81_920, 40_960, 16_384, 61_440, 71_680, 5_120, 2_048],
  ],
])('estimates %s', async (_, more, episodes, tokens) => {
  const { estimate } = await estimateFiles(filesOf(more));
  const { trainEpisodes, evalEpisodes, baselineEpisodes, warmupEpisodes } = estimate;
  expect([trainEpisodes, evalEpisodes, baselineEpisodes, warmupEpisodes]).toEqual(episodes);
  expect(estimate.lines.map((line) => line.tokens)).toEqual(tokens);
});

test('prices meters, cached prompts at a fifth, and sums what has a price', async () => {
  const pricing = ['student_prefill = 1', 'student_sample = 2', 'student_train = 3', 'teacher_prefill = 4', 'teacher_sample = 5'];
  const priced = (await estimateFiles(filesOf({ pricing: pricing.join('\n') }))).estimate;
  const usd = [0.06144, 0.006144, 0.024576, 0.12288, 0.2048, 0.004096, 0.01024];
  priced.lines.forEach((line, i) => {
    expect(line.usd).toBeCloseTo(usd[i] ?? Number.NaN, 12);
  });
  expect(priced.pricedUsd).toBeCloseTo(0.434176, 12);
  expect(priced.fullyPriced).toBe(true);

  const partly = (await estimateFiles(filesOf({ pricing: 'teacher_prefill = 4\nteacher_cached_prefill = 0' }))).estimate;
  expect(partly.lines.map((line) => line.usd)).toEqual([null, null, null, null, 0.2048, 0, null]);
  expect(partly.pricedUsd).toBe(0.2048);
  expect(partly.unpricedMeters).toEqual(['student_prefill', 'student_cached_prefill', 'student_sample', 'student_train', 'teacher_sample']);
});

test('names what a start would refuse, and estimates it all the same', async () => {
  const asked = { harbor: `${BASE.harbor}\nbackend = "e2b"`, train: `${BASE.train}\noverlap_steps = 1` };
  const found = await estimateFiles(filesOf(asked));
  expect(found.refusals.map(({ field }) => field)).toEqual(['harbor.backend', 'train.overlap_steps']);
  expect(found.sizes).toEqual({ nTrain: 3, nHoldout: 2 });
  const local = await estimateFiles({ ...filesOf(asked), backend: 'local' });
  expect(local.refusals.map(({ field }) => field)).toEqual(['train.overlap_steps']);
});

test('needs neither the job template nor the tasks, and writes nothing', async () => {
  const files = filesOf();
  const before = readdirSync(root);
  await estimateFiles(files);
  expect(readdirSync(root)).toEqual(before);
});

test.each<[name: string, files: () => ReturnType<typeof filesOf>, kinds: string[]]>([
  ['splits that overlap', () => filesOf({}, '["a", "x"]'), ['overlap']],
  ['a task twice in a split', () => filesOf({}, '["a", "a"]'), ['task_ids_invalid']],
  ['an empty split', () => filesOf({}, '["a"]', '[]'), ['task_ids_invalid']],
  [
    'files that are not there',
    () => ({ ...filesOf(), config: 'no/such.toml', tasks: 'no/such.json' }),
    ['config_unreadable', 'task_ids_unreadable'],
  ],
  [
    'all that is wrong at once',
    () => filesOf({ gate: 'k = 0\nn = 1' }, 'a', '{}'),
    ['config_invalid', 'config_invalid', 'task_ids_unreadable', 'task_ids_shape'],
  ],
])('refuses %s', async (_, files, kinds) => {
  const error = await estimateFiles(files()).catch((problem: unknown) => problem);
  expect(error).toBeInstanceOf(InputRefused);
  const refused = error as InputRefused;
  expect(refused.exitCode).toBe(2);
  expect(refused.problems.map(({ kind }) => kind)).toEqual(kinds);
});
