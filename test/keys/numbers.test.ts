import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { METERS } from '../../core/measures/meters.ts';
import type { RunStatus } from '../../workflows/messages.ts';
import { KeysSetting, type Observed, quickTasks } from './setting.ts';

/** One run with unusual numbers. Each test reads one key's effect where a service, a file or a query shows it. */
const KEYS = {
  'student.lora_rank': 3,
  'rollout.max_turns': 1,
  'train.steps': 3,
  'train.tasks_per_batch': 3,
  'train.group_size': 2,
  'train.learning_rate': 0.00123,
  'train.loss': 'ppo',
  'train.advantage_clip': 0.25,
  'train.num_substeps': 2,
  'train.sampler_refresh_every': 2,
  'train.save_state_every': 1,
  'train.trial_concurrency': 3,
  'train.rollout_max_turns': 3,
  'train.log_sample_rollouts': 1,
  'sampling.temperature': 0.9,
  'sampling.max_tokens': 13,
  'gate.k': 2,
  'gate.min_teacher_fraction': 0.37,
  'gate.confidence': 0.9,
  'pricing.student_prefill': 3,
  'pricing.student_cached_prefill': null,
  'pricing.student_sample': 5,
  'pricing.student_train': 1000,
  'pricing.teacher_prefill': 7,
  'pricing.teacher_cached_prefill': 2,
  'pricing.teacher_sample': 11,
  'budget.max_usd': 0.05,
};

let setting: KeysSetting;
let run: Observed;
let atCap: RunStatus | null = null;
beforeAll(async () => {
  setting = await KeysSetting.make();
  run = await setting.run({
    runId: 'keys-numbers',
    keys: KEYS,
    taskIds: quickTasks('train', /^(delete-the|copy)-/, 4),
    holdoutTaskIds: quickTasks('holdout', /^delete-\w{3}-\w{6}$/, 2),
    // The trainer never says that it had read something before.
    faults: { sample: (answer) => (answer.promptLogprobs === null ? answer : { ...answer, promptCacheHitTokens: 9 }) },
    onBudget: async (handle, status) => {
      atCap ??= status;
      await handle.executeUpdate('setBudget', { args: [{ by: 'the test', maxUsd: 100 }] });
    },
  });
}, 180_000);
afterAll(() => setting?.[Symbol.asyncDispose](), 60_000);

describe('student', () => {
  it('lora_rank', () => expect(run.traffic.models).toEqual([{ baseModel: 'stillroom/tiny-student', rank: 3 }]));
});

describe('train', () => {
  it('steps', () => expect(run.rows.map(({ step }) => step)).toEqual([1, 2, 3]));
  it('tasks_per_batch', () => expect(run.rows.map(({ tasks }) => tasks)).toEqual([3, 3, 3]));
  it('group_size', () => expect(run.rows.map(({ trials }) => trials)).toEqual([6, 6, 6]));
  it('learning_rate', () => expect(new Set(run.traffic.learningRates)).toEqual(new Set([0.00123])));

  it('loss = ppo', () => {
    expect(new Set(run.traffic.losses.map(({ lossFn }) => lossFn))).toEqual(new Set(['ppo']));
    expect(run.rows.map(({ loss }) => loss)).toEqual(['ppo', 'ppo', 'ppo']);
  });

  it('advantage_clip', () => {
    expect(Math.max(...run.traffic.advantages.map(Math.abs))).toBe(0.25);
    const clipped = run.traffic.advantages.filter((advantage) => Math.abs(advantage) === 0.25).length;
    expect(clipped).toBeGreaterThan(0);
    expect(run.rows.reduce((sum, row) => sum + row.clipped_tokens, 0)).toBe(clipped);
  });

  it('center_advantages = false leaves their mean where it is', () => {
    for (const { advantage_mean } of run.rows) expect(Math.abs(advantage_mean ?? 0)).toBeGreaterThan(1e-4);
  });

  it('num_substeps', () => {
    expect(run.rows.map(({ optimizer_updates }) => optimizer_updates)).toEqual([2, 2, 2]);
    expect([run.traffic.losses.length, run.traffic.learningRates.length]).toEqual([6, 6]);
    const [first, second] = run.traffic.losses.map(({ datums }) => datums.length);
    expect(Math.abs(Number(first) - Number(second))).toBeLessThanOrEqual(1);
  });

  it('sampler_refresh_every', () => {
    expect(run.traffic.samplers).toEqual(['step-0000', 'step-0002', 'step-0003']);
    expect(run.rows.map(({ sampler }) => sampler)).toEqual(['step-0000', 'step-0000', 'step-0002']);
    expect(run.rows.map(({ sampler_staleness_steps }) => sampler_staleness_steps)).toEqual([0, 1, 0]);
  });

  it('save_state_every', () => expect(run.traffic.states).toEqual(['step-0001', 'step-0002', 'step-0003']));
  it('trial_concurrency', () => expect(run.steps.map(({ mostAtOnce }) => mostAtOnce)).toEqual([3, 3, 3]));

  it('rollout_max_turns, in training alone', () => {
    const calls = run.steps.flatMap(({ trials }) => trials.map(({ summary }) => summary.calls));
    expect(Math.max(...calls)).toBe(3);
  });

  it('log_sample_rollouts', () => {
    expect(run.files.filter((name) => name.startsWith('samples-'))).toEqual([1, 2, 3].map((step) => `samples-step-000${step}.md`));
    const text = run.read('samples-step-0002.md');
    expect(text).toMatch(/^# Sample episodes of step 2\n/);
    expect(text.match(/^## /gm)).toHaveLength(1);
    expect(text).toMatch(/^files .*\ntask .*\n\$ ⟦[^⟧]+⟧/m);
  });
});

describe('rollout', () => {
  it('max_turns, in evaluations', () => {
    expect(run.evaluations).toHaveLength(3);
    for (const { trials } of run.evaluations) expect(trials.map(({ summary }) => summary.calls)).toEqual([1, 1, 1, 1]);
  });
});

describe('sampling', () => {
  const sampled = () => run.traffic.samples.filter(({ scores, stop }) => !scores && stop !== null && stop.length > 0);
  it('temperature', () => {
    const ofTrials = sampled().filter(({ maxTokens }) => maxTokens > 1); // the check that a model answers asks for one token
    expect(new Set(ofTrials.map(({ temperature }) => temperature))).toEqual(new Set([0.9]));
    expect(run.status.notices.join()).toContain('sampling.temperature is 0.9');
  });
  it('max_tokens', () => expect(Math.max(...sampled().map(({ maxTokens }) => maxTokens))).toBe(13));
});

describe('gate', () => {
  it('k', () => expect(run.result.evaluations.map(({ trials }) => trials)).toEqual([4, 4, 4]));
  it('min_teacher_fraction', () => {
    expect(run.result.verdict?.teacher).toBeGreaterThan(0);
    expect(run.result.verdict?.threshold).toBeCloseTo(0.37 * Number(run.result.verdict?.teacher), 12);
  });
  it('confidence', () => {
    expect(run.result.verdict?.improvement?.confidence).toBe(0.9);
    expect(run.result.verdict?.reasons).toContain('insufficient_evidence');
  });
});

/** USD per million tokens, by hand: a cached student token costs a fifth of a new one, because nothing else is said. */
const PRICES = {
  student_prefill: 3,
  student_cached_prefill: 0.6,
  student_sample: 5,
  student_train: 1000,
  teacher_prefill: 7,
  teacher_cached_prefill: 2,
  teacher_sample: 11,
};

describe('pricing', () => {
  const firstPrompts = () =>
    run.traffic.samples
      .filter(({ scores, maxTokens, weights }) => !scores && maxTokens === 1 && weights.includes('sampler_weights'))
      .reduce((sum, { prompt }) => sum + prompt.length, 0);
  const stepTokens = (row: Observed['rows'][number], meter: (typeof METERS)[number]) => row[`${meter}_tokens`];

  it.each(METERS)('%s', (meter) => {
    const used = run.rows.reduce((sum, row) => sum + stepTokens(row, meter), 0);
    const evaluated = run.result.evaluations.reduce((sum, { meters }) => sum + (meters[meter] ?? 0), 0);
    const line = run.result.spend.lines.find((line) => line.meter === meter);
    expect(line).toMatchObject({ pricePerMtokUsd: expect.closeTo(PRICES[meter], 12) });
    // Beside trials: the checks before the run, which ask a few tokens, the first calls of fresh weights, and the probes of saved ones.
    const beside = Number(line?.tokens) - used - evaluated;
    if (meter === 'student_train') expect(beside).toBe(run.traffic.probeTokens);
    else expect(beside - (meter === 'student_prefill' ? firstPrompts() : 0)).toBeLessThan(400);
    expect(beside).toBeGreaterThanOrEqual(0);
    expect(used + evaluated).toBeGreaterThan(0);
  });

  it('makes the cost of every row and of the run', () => {
    for (const row of run.rows) {
      const usd = METERS.reduce((sum, meter) => sum + (stepTokens(row, meter) * PRICES[meter]) / 1e6, 0);
      expect(row.usd).toBeCloseTo(usd, 12);
      expect(row.unpriced_meters).toEqual([]);
    }
    const all = run.result.spend.lines.reduce((sum, { meter, tokens }) => sum + (tokens * PRICES[meter]) / 1e6, 0);
    expect(run.result.spend.usd).toBeCloseTo(all, 12);
  });
});

describe('budget', () => {
  it('max_usd: the run waits at its cap, and goes on exactly there once it is raised', () => {
    expect(atCap).toMatchObject({ waitingFor: { kind: 'budget' }, spend: { maxUsd: 0.05 } });
    expect(atCap?.spend.usd).toBeLessThanOrEqual(0.05);
    expect(run.status.decisions.map(({ message, answer }) => [message, answer])).toContainEqual(['setBudget', 100]);
    expect(run.rows.map(({ step }) => step)).toEqual([1, 2, 3]);
  });
});
