import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { overflowIn } from '../activities/sampler-overflow.ts';
import { failureOf as activityFailureOf, Project } from '../activities/testing/project.ts';
import { inActivity } from '../activities/testing/training.ts';
import { createTrainingActivities } from '../activities/training.ts';
import type { StatePath, TrialId } from '../core/ids.ts';
import { buildDatums } from '../core/tokens/datums.ts';
import { keepTeacherRow } from '../core/tokens/teacher-row.ts';
import { BadRequest, type SampleResult, ServiceFailed, statePath, TrainingStateUnknown } from '../services/tinker/index.ts';
import type { RuleInput } from '../trainer/faults/plan.ts';
import { type Desk, failureOf, openDesk } from './faults/client-calls.ts';
import { ADAM, BATCH, ids, MODEL, PROMPT, SAMPLE } from './faults/client-program.ts';
import { accessTo } from './support/access.ts';
import { faultReports, on, putFaults } from './support/faults.ts';
import { TrainerFixture } from './trainer-fixture.ts';

/** What users of such services have reported, each made to happen by the trainer's fault plan. */

let fixture: TrainerFixture;
let url: string;
let desk: Desk;
beforeAll(async () => {
  fixture = await TrainerFixture.start({ faults: '-' });
  url = fixture.trainer.url;
});
beforeEach(async () => {
  desk = await openDesk(url);
});
afterEach(() => desk.client.close());
afterAll(() => fixture.stop());

const LIMITS = { contextBudgetTokens: 192, maxDatumTokens: 192 };
const onSample = (fault: RuleInput['fault']) => on('retrieve_future', fault, { for: 'Sample', times: 'always' });

describe('log-probabilities that are none', () => {
  it.each([
    ['NaN', 'nan', [], Number.NaN],
    ['infinite', 'inf', [], Number.POSITIVE_INFINITY],
    ['minus infinite', '-inf', [], Number.NEGATIVE_INFINITY],
    ['null in JSON', 'null', [onSample({ kind: 'json_result' })], Number.NaN],
  ] as const)('%s: seen where they are, and nowhere else', async (_, value, more, seen) => {
    const sample = await desk.sampler.sample(SAMPLE);
    const scores = await desk.sampler.promptLogprobs(PROMPT);
    await putFaults(url, onSample({ kind: 'logprobs', value, at: [3] }), ...more);
    expect(await desk.sampler.sample(SAMPLE)).toMatchObject({ tokens: sample.tokens, logprobs: sample.logprobs.with(3, seen) });
    expect((await desk.sampler.promptLogprobs(PROMPT)).logprobs).toEqual(scores.logprobs.with(3, seen));
  });

  /** The training sequences of an episode of one call. */
  const datumsOf = ({ tokens, logprobs }: SampleResult) => {
    const span = { callIndex: 0, prompt: PROMPT, sampled: tokens, logprobs: Float64Array.from(logprobs), sampler: 's' };
    return buildDatums([{ trial: 't' as TrialId, spans: [{ ...span, stop: 'length' }], stopReason: null }], LIMITS);
  };

  it.each(['nan', 'inf', '-inf'] as const)('%s: no training on a sampled token that has it', async (value) => {
    await putFaults(url, onSample({ kind: 'logprobs', value, at: [3], in: 'samples' }));
    const { datums, stats } = datumsOf(await desk.sampler.sample(SAMPLE));
    expect([stats.lossTokens, stats.maskedTokens]).toEqual([SAMPLE.maxTokens - 1, 1]);
    expect(datums.map(({ mask }) => mask[PROMPT.length + 3])).toEqual([0]);
  });

  it.each(['nan', 'inf', '-inf'] as const)('%s: no step on a teacher’s scores that have it', async (value) => {
    const { datums } = datumsOf(await desk.sampler.sample(SAMPLE));
    const place = PROMPT.length + 3;
    await putFaults(url, onSample({ kind: 'logprobs', value, at: [place], in: 'prompt' }));
    const rows = await Promise.all(datums.map(({ tokens }) => desk.sampler.promptLogprobs(tokens)));
    expect(() => datums.map((datum, i) => keepTeacherRow(datum, rows[i]?.logprobs ?? []))).toThrow(
      `log-probability at loss position ${place} is`,
    );
  });
});

describe('N ids with N+1 log-probabilities', () => {
  it.each<[string, 'samples' | 'prompt' | 'loss', (desk: Desk) => Promise<unknown>, RegExp]>([
    ['a sample', 'samples', ({ sampler }) => sampler.sample(SAMPLE), /\b12 tokens .* 13 log-probabilities/],
    ['a prompt', 'prompt', ({ sampler }) => sampler.promptLogprobs(PROMPT), /\b16 prompt tokens.* 17\b/],
    ['a loss', 'loss', ({ training }) => training.forward(BATCH, 'cross_entropy'), /\b10 target tokens.* 11 log-probabilities/],
  ])('%s names both counts', async (_, place, call, words) => {
    await putFaults(url, on('retrieve_future', { kind: 'extra_logprob', in: place }));
    const error = await failureOf(call(desk));
    expect(error).toBeInstanceOf(ServiceFailed);
    expect(error.message).toMatch(words);
  });
});

describe('a sampler’s path given as training state', () => {
  it('never reaches the service', async () => {
    const path = await desk.training.saveForSampler('sampler');
    await putFaults(url, on('load_weights', { kind: 'drop' }, { times: 'always' }));
    const given = path as unknown as StatePath;
    const work = [
      desk.client.createModelFromState(given, { ...MODEL, optimizer: true }),
      desk.training.loadState(given, { optimizer: false }),
      Promise.resolve().then(() => statePath(path)),
    ];
    for (const each of work) {
      const error = await failureOf(each);
      expect(error).toBeInstanceOf(BadRequest);
      expect(error.message).toContain(path);
    }
    expect(await faultReports(url)).toEqual([expect.objectContaining({ matched: 0 })]);
  });
});

describe('410', () => {
  it.each<[string, string, RuleInput['for'], (desk: Desk) => Promise<unknown>]>([
    ['forward', 'forward_backward', 'Forward', ({ training }) => training.forward(BATCH, 'cross_entropy')],
    ['forward_backward', 'forward_backward', 'ForwardBackward', ({ training }) => training.forwardBackward(BATCH, 'cross_entropy')],
    ['optim_step', 'optim_step', 'OptimStep', ({ training }) => training.optimStep(ADAM)],
  ])('on %s means that the training state is unknown; it is not submitted again', async (_, path, type, call) => {
    const gone = { kind: 'status', status: 410, detail: 'evicted' } as const;
    await putFaults(
      url,
      on('retrieve_future', gone, { times: 'always', ...(type ? { for: type } : {}) }),
      on(path, { kind: 'delay_promise', ms: 1 }),
    );
    const error = await failureOf(call(desk));
    expect(error).toBeInstanceOf(TrainingStateUnknown);
    expect(error).toMatchObject({ status: 410, detail: 'evicted', requestId: `${desk.training.modelId}:2` });
    expect((await faultReports(url)).map(({ matched }) => matched)).toEqual([1, 1]);
    await putFaults(url, on(path, gone, { times: 'always' }));
    const other = desk.client.training(desk.training.modelId, { nextSeqId: 3 });
    expect(await failureOf(call({ ...desk, training: other }))).toBeInstanceOf(TrainingStateUnknown);
    expect((await faultReports(url)).map(({ matched }) => matched)).toEqual([1]);
  });
});

describe('a server that takes less than the nominal context', () => {
  it('says how much was asked of it and how much it takes', async () => {
    await putFaults(url, on('*', { kind: 'context_limit', tokens: 100 }));
    const { supportedModels } = await desk.client.capabilities();
    expect(supportedModels.map(({ maxContextLength }) => maxContextLength)).toEqual([192, 192]);
    const long = ids('a'.repeat(101));
    for (const call of [
      desk.sampler.sample({ ...SAMPLE, prompt: long.slice(0, 89) }),
      desk.sampler.promptLogprobs(long),
      desk.training.forward([{ modelInput: long, targetTokens: long, weights: new Float32Array(101) }], 'cross_entropy'),
    ]) {
      const error = await failureOf(call);
      expect(error).toBeInstanceOf(BadRequest);
      expect(error.message).toMatch(/\b101 tokens.*\b100\b/);
      expect(overflowIn(error)).toEqual({ limitTokens: 100 });
    }
  });
});

describe('a named save that does not persist', () => {
  const losing = (times: 1 | 'always') => on('save_weights_for_sampler', { kind: 'named_save_does_not_persist' }, { times });

  it('is told from one that does by the listing', async () => {
    await putFaults(url, losing(1));
    const { checkpoints } = desk.client;
    const lost = await desk.training.saveForSampler('lost');
    const kept = await desk.training.saveForSampler('kept');
    const error = await failureOf(checkpoints.assertListed(lost));
    expect(error).toBeInstanceOf(ServiceFailed);
    expect(error.message).toContain(lost);
    expect(await checkpoints.assertListed(kept)).toBe(true);
    expect(await checkpoints.assertListed(desk.state)).toBe(true);
  });

  it.each([404, 405] as const)('cannot be told where there is no listing (%d)', async (status) => {
    const path = await desk.training.saveForSampler('sampler');
    await putFaults(url, on('training_runs/*', { kind: 'status', status }));
    expect(await desk.client.checkpoints.assertListed(path)).toBe(false);
  });

  it('ends the activity that saved it, by its path', async () => {
    await using project = await Project.make();
    await using models = accessTo(url);
    const { openTraining, saveSampler } = createTrainingActivities({ ...project, models });
    const { ref: run } = await project.resolve();
    let training = await inActivity('open', 1, () => openTraining({ run }));
    const save = (name: string, attempt: number) => inActivity(name, attempt, () => saveSampler({ run, training, name }));
    const path = (name: string) => `tinker://${training.at.modelId}/sampler_weights/${name}`;
    const kept = await save('kept', 1);
    expect(kept.path).toBe(path('kept'));
    ({ training } = kept);
    await putFaults(url, losing('always'));
    await expect(save('lost', 1)).rejects.toThrow(ServiceFailed);
    expect(await activityFailureOf(save('lost', 5))).toEqual({
      type: 'SaveNotKept',
      nonRetryable: true,
      message: expect.stringContaining(path('lost')),
    });
  });
});
