import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SampleResponse } from '../../services/tinker/wire/index.ts';
import type { Faults } from '../support/altering-proxy.ts';
import { KeysSetting, type Observed, quickTasks } from './setting.ts';

const TASKS = { taskIds: quickTasks('train', /^(copy|move)-/, 8), holdoutTaskIds: quickTasks('holdout', /^delete-\w{3}-\w{6}$/, 2) };

let setting: KeysSetting;
beforeAll(async () => {
  setting = await KeysSetting.make();
}, 120_000);
afterAll(() => setting?.[Symbol.asyncDispose](), 60_000);

describe('a student that a high learning rate and four substeps ruin', () => {
  const KEYS = {
    'train.steps': 5,
    'train.tasks_per_batch': 4,
    'train.group_size': 2,
    'train.learning_rate': 0.03,
    'train.num_substeps': 4,
    'train.save_state_every': 1,
    'gate.k': 1,
    'tripwire.entropy_warn_frac': null,
    'tripwire.entropy_kill_frac': null,
  };

  it('is stopped by the tripwire as it is by default, at the second kill in a row', async () => {
    const { result, rows, status } = await setting.run({ runId: 'keys-tripwire', keys: KEYS, ...TASKS });
    expect(result).toMatchObject({ outcome: 'stopped by tripwire', verdict: null, adapter: null });
    expect(rows.length).toBeLessThan(5);
    const killed = rows.map(({ warnings }) => warnings.some((warning) => /tripwire\.\w+_kill_/.test(warning)));
    expect(killed.slice(-2)).toEqual([true, true]);
    expect(killed.slice(0, -1).join()).not.toContain('true,true');
    expect(status.notices.at(-2)).toMatch(/^tripwire: /);
    const bad = rows.at(-2)?.sampler; // what began the streak was sampled from these
    expect(bad).toMatch(/^step-\d{4}$/);
    expect(result.resume.latest?.step ?? -1).toBeLessThan(Number(bad?.slice('step-'.length)));
  }, 120_000);

  it('goes on to its last step with tripwire.enabled = false', async () => {
    const keys = { ...KEYS, 'tripwire.enabled': false };
    const { result, rows } = await setting.run({ runId: 'keys-tripwire-off', keys, ...TASKS });
    expect(result.outcome).toBe('rejected');
    expect(rows.map(({ step, warnings }) => [step, warnings])).toEqual([1, 2, 3, 4, 5].map((step) => [step, []]));
    const ratios = rows.flatMap((row) => [row.entropy_ratio, row.generation_tokens_ratio]).map(Number);
    expect(ratios.some((ratio) => ratio >= 3 || ratio <= 0.25)).toBe(true);
  }, 120_000);
});

/** What the student samples in each step: nats per token, tokens per episode. The first is what the others are compared with. */
const SCRIPT: readonly (readonly [entropyNats: number, tokens: number, warning: string | null])[] = [
  [1, 10, null],
  [0.7, 10, 'entropy is at 0.70 of its first value, at or below 0.8 (tripwire.entropy_warn_frac)'],
  [1.3, 10, 'entropy is at 1.30 of its first value, at or above 1.2 (tripwire.entropy_warn_mult)'],
  [1, 7, 'length is at 0.70 of its first value, at or below 0.75 (tripwire.length_warn_frac)'],
  [1, 13, 'length is at 1.30 of its first value, at or above 1.25 (tripwire.length_warn_mult)'],
  [0.5, 10, 'entropy is at 0.50 of its first value, at or below 0.6 (tripwire.entropy_kill_frac)'],
  [1, 10, null],
  [1.5, 10, 'entropy is at 1.50 of its first value, at or above 1.4 (tripwire.entropy_kill_mult)'],
  [1, 5, 'length is at 0.50 of its first value, at or below 0.55 (tripwire.length_kill_frac)'],
  [1, 15, 'length is at 1.50 of its first value, at or above 1.45 (tripwire.length_kill_mult)'],
];

/** A service whose trained weights say what the script has for their step; base models are as they are. */
const SCRIPTED: Faults = {
  sample: (answer, { model }) => {
    const trained = /sampler_weights\/step-(\d+)$/.exec(model);
    const line = trained === null ? undefined : SCRIPT[Number(trained[1])];
    return line === undefined || answer.promptLogprobs !== null ? answer : said(answer, line[0], line[1]);
  },
};

function said(answer: SampleResponse, entropyNats: number, tokens: number): SampleResponse {
  const text = `${'echo 12345678901234'.slice(0, tokens - 1)}\n`;
  const sequence = { tokens: Int32Array.from(Buffer.from(text)), logprobs: new Float32Array(tokens).fill(-entropyNats) };
  return { ...answer, sequences: [{ ...sequence, stopReason: 'stop', topk: null }] };
}

describe('a student that says what a script has for it', () => {
  let run: Observed;
  beforeAll(async () => {
    const keys = {
      'rollout.max_turns': 1,
      'train.steps': 12,
      'train.tasks_per_batch': 1,
      'train.group_size': 1,
      'train.learning_rate': 1e-9,
      'gate.k': 1,
      'tripwire.entropy_warn_frac': 0.8,
      'tripwire.entropy_kill_frac': 0.6,
      'tripwire.entropy_warn_mult': 1.2,
      'tripwire.entropy_kill_mult': 1.4,
      'tripwire.length_warn_frac': 0.75,
      'tripwire.length_kill_frac': 0.55,
      'tripwire.length_warn_mult': 1.25,
      'tripwire.length_kill_mult': 1.45,
      'tripwire.kill_consecutive_steps': 3,
      'train.save_state_every': 1,
    };
    run = await setting.run({ runId: 'keys-thresholds', keys, faults: SCRIPTED, ...TASKS });
  }, 120_000);

  it.each(SCRIPT.map(([, , warning], index) => [warning?.match(/tripwire\.\w+/)?.[0] ?? `nothing at step ${index + 1}`, index, warning]))(
    '%s',
    (_, index, warning) => expect(run.rows[Number(index)]?.warnings).toEqual(warning === null ? [] : [warning]),
  );

  it('tripwire.kill_consecutive_steps', () => {
    expect(run.rows).toHaveLength(SCRIPT.length);
    expect(run.result.outcome).toBe('stopped by tripwire');
  });

  it('goes on from what was saved before the weights whose samples began the streak', () => {
    expect(run.rows.at(-3)).toMatchObject({ step: 8, sampler: 'step-0007' });
    expect(run.result.resume).toMatchObject({ latest: { step: 6 }, restoreFrom: expect.stringMatching(/\/weights\/step-0006$/) });
    expect(run.status.notices.at(-1)).toMatch(/^the last weights saved before that are of step-0006: tinker:/);
  });
});
