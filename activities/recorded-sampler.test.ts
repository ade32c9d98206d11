import { expect, it } from 'vitest';
import type { SamplerPath, TrialId } from '../core/ids.ts';
import { FencedLog } from '../services/blobs/fenced-log.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { PaidCalls } from './paid-calls.ts';
import { recordedSampler } from './recorded-sampler.ts';

const PROMPT = Int32Array.of(1, 2, 3);

/** An attempt at a trial with weights of a version; what it is answered, and whether those weights were asked. */
async function attempt(objects: MemoryObjects, number: number, { version, path }: { readonly version: string; readonly path: string }) {
  const calls = await PaidCalls.open(new FencedLog(objects, 'book/'), { execution: 'e', attempt: number });
  let asked = 0;
  const sample = async () => {
    asked++;
    return { tokens: Int32Array.of(number), logprobs: Float32Array.of(-1), stop: 'stop', promptCacheHitTokens: 0 } as const;
  };
  const never = new AbortController().signal;
  const options = {
    calls,
    trialId: 't' as TrialId,
    who: 'student',
    model: path as SamplerPath,
    isUsable: () => true,
    drain: never,
    signal: never,
  } as const;
  const sampler = recordedSampler({ version, sample }, options);
  const { tokens } = await sampler.sample({ prompt: PROMPT, maxTokens: 4, temperature: 1, stopTokens: [] });
  return { said: tokens[0], asked, version: sampler.version };
}

const STEP_1 = { version: 'step-0001', path: 'tinker://r/sampler_weights/step-0001' };

it('a trial that is taken over is answered from its book by the same weights', async () => {
  const objects = new MemoryObjects();
  await attempt(objects, 1, STEP_1);
  expect(await attempt(objects, 2, STEP_1)).toEqual({ said: 1, asked: 0, version: 'step-0001' });
});

it.each([
  ['a refreshed version', { version: 'step-0002', path: 'tinker://r/sampler_weights/step-0002' }],
  ['the same version, published anew', { ...STEP_1, path: 'tinker://r/sampler_weights/step-0001-2' }],
])('what other weights said is not given out as said by %s', async (_, weights) => {
  const objects = new MemoryObjects();
  await attempt(objects, 1, STEP_1);
  expect(await attempt(objects, 2, weights)).toEqual({ said: 2, asked: 1, version: weights.version });
});
