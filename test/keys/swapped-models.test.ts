import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Faults } from '../support/altering-proxy.ts';
import { KeysSetting, type Observed, quickTasks } from './setting.ts';

const BUDGET_TOKENS = 1030;

/** One run with the quickstart's models in each other's place, on the teacher's best tokens, with more room than the models have. */
const KEYS = {
  'student.base_model': 'stillroom/tiny-teacher',
  'teacher.model': 'stillroom/tiny-student',
  'rollout.max_turns': 2,
  'rollout.context_budget_tokens': BUDGET_TOKENS,
  'train.steps': 2,
  'train.tasks_per_batch': 2,
  'train.group_size': 2,
  'train.learning_rate': 0.05,
  'train.loss': 'topk_ce',
  'train.topk': 3,
  'sampling.max_tokens': 1100,
  'gate.k': 1,
  'gate.require_no_regression': false,
};
const TASKS = { taskIds: quickTasks('train', /^copy-/, 3), holdoutTaskIds: quickTasks('holdout', /^delete-\w{3}-\w{6}$/, 3) };

/** A service that says it takes 5,000 tokens, and quietly samples as many as it can. */
const ROOMY: Faults = {
  models: (models) => models.map((model) => ({ ...model, max_context_length: 5_000 })),
  ask: (body) => {
    const params = body.sampling_params as { max_tokens: number };
    return { ...body, sampling_params: { ...params, max_tokens: Math.min(params.max_tokens, 28) } };
  },
};

/** A roomy service whose student, before it was trained, says 800 letters and then fills the budget to its last token. */
function talkative(): Faults {
  let promptTokens = 0;
  return {
    ...ROOMY,
    ask: (body) => {
      const [{ tokens }] = (body.prompt as { chunks: [{ tokens: number[] }] }).chunks;
      promptTokens = tokens.length;
      return { ...ROOMY.ask?.(body), prompt: { chunks: [{ type: 'encoded_text', tokens: tokens.slice(0, 150) }] } };
    },
    sample: (answer, { model }) => {
      if (!model.endsWith('sampler_weights/step-0000') || answer.promptLogprobs !== null) return answer;
      const length = promptTokens < 800 ? 800 : BUDGET_TOKENS - promptTokens;
      const tokens = Int32Array.from(Buffer.from(`${'x'.repeat(length - 1)}\n`));
      return { ...answer, sequences: [{ tokens, logprobs: new Float32Array(length).fill(-1), stopReason: 'stop', topk: null }] };
    },
  };
}

let setting: KeysSetting;
let run: Observed;
beforeAll(async () => {
  setting = await KeysSetting.make();
  run = await setting.run({ runId: 'keys-topk', keys: KEYS, faults: ROOMY, ...TASKS });
}, 180_000);
afterAll(() => setting?.[Symbol.asyncDispose](), 60_000);

/** Calls that ask for scores after training began; those before are preflight's. */
const scores = () => run.traffic.samples.filter(({ topk }) => topk > 0);

describe('student', () => {
  it('base_model', () => {
    expect(run.traffic.models).toEqual([{ baseModel: 'stillroom/tiny-teacher', rank: 8 }]);
    expect(run.result.evaluations[1]).toMatchObject({ label: 'student-before', model: { model: 'stillroom/tiny-teacher' } });
  });
});

describe('teacher', () => {
  it('model', () => {
    expect(scores().length).toBeGreaterThan(0);
    expect(new Set(scores().map(({ weights }) => weights))).toEqual(new Set(['stillroom/tiny-student']));
    expect(run.result.evaluations[0]).toMatchObject({ label: 'teacher', model: { model: 'stillroom/tiny-student' } });
  });
});

describe('rollout.context_budget_tokens', () => {
  it('is what a call and its answer have together', () => {
    const room = run.traffic.samples.filter(({ maxTokens }) => maxTokens > 28).map(({ prompt, maxTokens }) => prompt.length + maxTokens);
    expect(room.length).toBeGreaterThan(8);
    expect(new Set(room)).toEqual(new Set([BUDGET_TOKENS]));
  });

  it('ends an episode that fills it, which is not trained on', async () => {
    const tasks = { 'train.steps': 1, 'train.tasks_per_batch': 1, 'train.group_size': 1, 'rollout.max_turns': 5 };
    const full = await setting.run({ runId: 'keys-context', keys: { ...KEYS, ...tasks }, faults: talkative(), ...TASKS });
    const [trial] = full.steps[0]?.trials ?? [];
    expect(trial?.summary).toMatchObject({ calls: 2, overflow: true, stopReason: 'context_overflow', executed: true });
    expect(full.rows[0]).toMatchObject({ trials: 1, overflow_trials: 1, overflow_drops: 1, built_datums: 0, datums: 0 });
  });
});

describe('rollout.renderers', () => {
  it("another model's is refused", async () => {
    const keys = { 'rollout.renderers': { 'stillroom/tiny-student': 'stillroom_tiny', 'stillroom/tiny-teacher': 'qwen3' } };
    const failure = await setting.failure({ runId: 'keys-renderers', keys, ...TASKS });
    expect(failure).toMatchObject({
      type: 'PreflightFailed',
      message: expect.stringMatching(/"qwen3", but the embedded tiny models have/),
    });
  });
});

describe('train', () => {
  it('loss = topk_ce', () => {
    expect(new Set(run.traffic.losses.map(({ lossFn }) => lossFn))).toEqual(new Set(['cross_entropy']));
    expect(run.rows.map(({ loss }) => loss)).toEqual(['topk_ce', 'topk_ce']);
  });

  it('topk: as many candidates are asked for, sent and paid for', () => {
    expect(new Set(scores().map(({ topk }) => topk))).toEqual(new Set([3]));
    run.rows.forEach((row, step) => {
      expect(row.datums).toBe(3 * row.built_datums);
      expect(run.traffic.losses[step]?.datums).toHaveLength(row.datums);
      expect(row.student_train_tokens).toBe(3 * (row.loss_tokens + row.context_tokens));
    });
  });
});

describe('gate', () => {
  it('require_no_regression = false: a student that became worse is not held up for that', () => {
    const { verdict } = run.result;
    expect(Number(verdict?.after)).toBeLessThan(Number(verdict?.before));
    expect(verdict?.reasons).not.toContain('regression');
  });
});
