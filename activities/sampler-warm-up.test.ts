import { describe, expect, it } from 'vitest';
import type { SamplerPath } from '../core/ids.ts';
import { BadRequest, BillingPaused, RetryLater, type SampleRequest, type Sampler } from '../services/tinker/index.ts';
import { warmUpSampler } from './sampler-warm-up.ts';
import { MemoryObjects } from './testing/crashing-store.ts';
import { inActivity } from './testing/training.ts';

const SAMPLER = { kind: 'sampler', model: 'm', path: 'tinker://r/sampler_weights/step-0001' as SamplerPath, version: 'step-0001' } as const;
const ANSWER = { tokens: Int32Array.of(5), logprobs: Float32Array.of(-1), stop: 'length', promptCacheHitTokens: 0 } as const;

/** A warm-up of weights that answer as told. */
function warmUp(answer: (call: number, request: SampleRequest) => Promise<typeof ANSWER>, objects = new MemoryObjects()) {
  const asked: SampleRequest[] = [];
  const sample = (request: SampleRequest) => answer(asked.push(request) - 1, request);
  const models = { sampling: <T>(_: unknown, work: (sampler: Sampler) => Promise<T>) => work({ sample } as unknown as Sampler) };
  const order = { runId: 'run', name: 'step-0001', sampler: SAMPLER, ids: Array.from({ length: 40 }, (_, id) => id) };
  const run = (attempt: number) => inActivity('save', attempt, () => warmUpSampler(order, { objects, models }));
  return { asked, run };
}

describe('fresh weights', () => {
  it('are asked for one token eight times, all at once, and that is booked', async () => {
    const together = Promise.withResolvers<typeof ANSWER>();
    const { asked, run } = warmUp((call) => {
      if (call === 7) together.resolve(ANSWER);
      return together.promise;
    });
    const { usage, notices } = await run(1);
    expect(asked.map(({ maxTokens, prompt }) => [maxTokens, prompt.length])).toEqual(Array(8).fill([1, 16]));
    expect(new Set(asked.map(({ seed }) => seed)).size).toBe(8);
    expect(usage).toMatchObject({ meters: { student_sample: 8 }, sent: { promptTokens: 128, sampledTokens: 8 }, lost: [] });
    expect(notices).toEqual([]);
  });

  it('a later attempt does not ask again, and tells the same', async () => {
    const { asked, run } = warmUp(async () => ANSWER);
    const first = await run(1);
    expect(await run(2)).toEqual(first);
    expect(asked).toHaveLength(8);
  });

  it.each([
    ['refuse', new BadRequest('no', { call: 'asample', status: 400, fate: 'refused' }), 0],
    ['cannot be reached', new RetryLater('no answer', { call: 'asample' }), 8],
    ['want payment first', new BillingPaused('pay', { call: 'asample', status: 402, fate: 'unpaid' }), 0],
    ['keep answers back', new BillingPaused('pay', { call: 'asample', status: 402, fate: 'standing', requestId: 'r' }), 8],
  ])('that %s are published all the same; calls of which nobody knows are booked as made', async (_, error, lost) => {
    const { usage, notices } = await warmUp(() => Promise.reject(error)).run(1);
    expect(usage.lost).toHaveLength(lost);
    expect(usage.meters.student_sample ?? 0).toBe(lost);
    expect(notices).toEqual([expect.stringMatching(/the first 8 calls of sampler step-0001 failed.*asample: /)]);
  });

  it('that fail some calls are no news', async () => {
    const failing = new RetryLater('busy', { call: 'asample', status: 429, fate: 'refused' });
    const { usage, notices } = await warmUp((call) => (call % 2 === 0 ? Promise.resolve(ANSWER) : Promise.reject(failing))).run(1);
    expect(usage.sent.sampledTokens).toBe(4);
    expect(notices).toEqual([]);
  });

  it('are not asked what cannot be written down', async () => {
    const objects = new MemoryObjects();
    const { asked, run } = warmUp(
      async () => ANSWER,
      Object.assign(objects, { create: () => Promise.reject(new Error('the store is full')) }),
    );
    await expect(run(1)).rejects.toThrow('the store is full');
    expect(asked).toEqual([]);
  });
});
