import { describe, expect, it } from 'vitest';
import { Decoder } from './decoder.ts';
import { uniformStream } from './random.ts';
import { promptLogprobs } from './scoring.ts';
import { TINY_SHAPE } from './shape.ts';
import type { DecodeRequest, DecodeResult, DenseWeights } from './types.ts';
import { initialWeights } from './weights.ts';

/** Untrained but with an embedding large enough for distributions that are far from flat. */
const sharpWeights = (seed: number): DenseWeights => {
  const weights = initialWeights(TINY_SHAPE, seed);
  return { ...weights, values: weights.values.map((value, i) => (i < 128 * 64 ? value * 2.5 : value)) };
};
const weights = sharpWeights(1);
const other = sharpWeights(2);
const uniform = uniformStream(4);
const ids = (length: number) => Int32Array.from({ length }, () => Math.floor(uniform() * 128));
const request = (changes: Partial<DecodeRequest>): DecodeRequest => ({
  weights,
  prompt: Int32Array.of(1),
  maxTokens: 12,
  temperature: 1,
  stopTokens: [10],
  seed: 1,
  promptLogprobs: false,
  topkPromptLogprobs: 0,
  ...changes,
});

const runAll = (decoder: Decoder, requests: readonly DecodeRequest[]): DecodeResult[] => {
  const order = requests.map((each) => decoder.submit(each));
  const results = new Map<number, DecodeResult>();
  while (decoder.isBusy) for (const { id, result } of decoder.step()) results.set(id, result);
  return order.map((id) => results.get(id) as DecodeResult);
};
const alone = (changes: DecodeRequest): DecodeResult => runAll(new Decoder({ cachedSequences: 1 }), [changes])[0] as DecodeResult;
const joined = (...parts: readonly Int32Array[]): Int32Array => Int32Array.from(parts.flatMap((part) => [...part]));

describe('sampling with a cache and scoring without one', () => {
  it('give the same log-probabilities to the bit', () => {
    const prompts = [1, 3, 40, 150].map(ids);
    const results = runAll(
      new Decoder({ cachedSequences: 8 }),
      prompts.map((prompt, seed) => request({ prompt, seed, maxTokens: 30 })),
    );
    const scores = promptLogprobs(
      weights,
      prompts.map((prompt, i) => joined(prompt, (results[i] as DecodeResult).tokens)),
    );
    results.forEach(({ logprobs }, i) => {
      expect(logprobs).toEqual(scores[i]?.slice((prompts[i] as Int32Array).length));
    });
  });

  it('agree on prompt log-probabilities', () => {
    const prompt = ids(50);
    const result = alone(request({ prompt, maxTokens: 1, promptLogprobs: true }));
    expect(result.promptLogprobs).toEqual(promptLogprobs(weights, [prompt])[0]);
    expect(result.promptLogprobs?.[0]).toBeNaN();
  });

  it('score a prompt without sampling when max_tokens is 0', () => {
    const prompt = ids(9);
    const result = alone(request({ prompt, maxTokens: 0, promptLogprobs: true }));
    expect([result.tokens.length, result.stop]).toEqual([0, 'length']);
    expect(result.promptLogprobs).toEqual(promptLogprobs(weights, [prompt])[0]);
  });
});

describe('a request', () => {
  it('gives the same tokens alone, in a crowd with other weights, and with too few caches for all', () => {
    const requests = Array.from({ length: 24 }, (_, i) =>
      request({ prompt: ids(1 + ((i * 7) % 60)), seed: i, weights: i % 3 === 0 ? other : weights }),
    );
    const wanted = requests.map(alone);
    for (const cachedSequences of [3, 64]) expect(runAll(new Decoder({ cachedSequences }), requests)).toEqual(wanted);
  });

  it('depends on its seed', () => {
    const tokens = (seed: number) => alone(request({ prompt: Int32Array.of(5, 6), seed, stopTokens: [] })).tokens.join();
    expect(tokens(1)).toBe(tokens(1));
    expect(new Set(Array.from({ length: 20 }, (_, seed) => tokens(seed))).size).toBe(20);
    expect(tokens(2 ** 40)).not.toBe(tokens(0));
  });

  it('draws tokens as often as their probabilities say, at any temperature', () => {
    for (const temperature of [1, 0.5]) {
      const drawn = runAll(
        new Decoder({ cachedSequences: 64 }),
        Array.from({ length: 3000 }, (_, seed) => request({ seed, temperature, maxTokens: 1 })),
      );
      const seen = new Map<number, { count: number; probability: number }>();
      for (const { tokens, logprobs } of drawn) {
        const entry = seen.get(tokens[0] as number) ?? { count: 0, probability: Math.exp(logprobs[0] as number) };
        entry.count += 1;
        seen.set(tokens[0] as number, entry);
      }
      const chiSquare = [...seen.values()]
        .filter(({ probability }) => probability > 0.005)
        .map(({ count, probability }) => (count - 3000 * probability) ** 2 / (3000 * probability));
      expect(chiSquare.length).toBeGreaterThan(10);
      // Mean 1 per class; 2 would be many standard deviations away.
      expect(chiSquare.reduce((sum, part) => sum + part, 0) / chiSquare.length).toBeLessThan(2);
    }
  });

  it('is greedy at temperature 0, with the plain log-probability', () => {
    const prompt = ids(6);
    const [token] = alone(request({ prompt, temperature: 0, maxTokens: 1 })).tokens;
    const scored = alone(
      request({ prompt: joined(prompt, Int32Array.of(token as number)), maxTokens: 1, topkPromptLogprobs: 1, promptLogprobs: true }),
    );
    expect(scored.topkPromptLogprobs?.tokenIds[6]).toBe(token);
    expect(alone(request({ prompt, temperature: 0, maxTokens: 1 })).logprobs[0]).toBe(scored.promptLogprobs?.[6]);
  });

  it('ends with its stop token, or by length', () => {
    const free = alone(request({ stopTokens: [], maxTokens: 20 }));
    expect([free.tokens.length, free.stop]).toEqual([20, 'length']);
    const stopToken = free.tokens[7] as number;
    const stopped = alone(request({ stopTokens: [stopToken], maxTokens: 20 }));
    const firstAt = free.tokens.indexOf(stopToken);
    expect([stopped.tokens, stopped.stop]).toEqual([free.tokens.slice(0, firstAt + 1), 'stop']);
  });

  it.each([
    ['an empty prompt', { prompt: new Int32Array() }, /prompt is empty/],
    ['a foreign id', { prompt: Int32Array.of(128) }, /prompt holds id 128/],
    ['too long', { prompt: new Int32Array(190), maxTokens: 3 }, /prompt of 190 tokens and max_tokens 3 are more than the context of 192/],
    ['a bad temperature', { temperature: Number.NaN }, /temperature is NaN/],
    ['a bad seed', { seed: 0.5 }, /seed is 0.5/],
    ['too many candidates', { topkPromptLogprobs: 65 }, /topk_prompt_logprobs is 65.*0 \(none\) to 64/],
    ['half a candidate', { topkPromptLogprobs: 0.5 }, /topk_prompt_logprobs is 0.5/],
  ])('is refused with a reason: %s', (_, changes, message) => {
    expect(() => new Decoder({ cachedSequences: 1 }).submit(request(changes))).toThrow(message);
  });
});

describe('the prefix cache', () => {
  it('makes the next turn of a conversation pay for its new tokens only, without changing a bit of the result', () => {
    const decoder = new Decoder({ cachedSequences: 4 });
    const prompt = ids(40);
    const [turn1] = runAll(decoder, [request({ prompt })]) as [DecodeResult];
    expect(turn1.promptCacheHitTokens).toBe(0);
    const next = request({ prompt: joined(prompt, turn1.tokens, ids(5)), seed: 2 });
    const [turn2] = runAll(decoder, [next]) as [DecodeResult];
    // The last sampled token was never fed.
    expect(turn2.promptCacheHitTokens).toBe(40 + turn1.tokens.length - 1);
    expect(turn2).toEqual({ ...alone(next), promptCacheHitTokens: turn2.promptCacheHitTokens });
  });

  it('serves several attempts at one prompt, also while the first still runs', () => {
    const decoder = new Decoder({ cachedSequences: 8 });
    const prompt = ids(40);
    const first = decoder.submit(request({ prompt, stopTokens: [] }));
    decoder.step();
    const later = [2, 3].map((seed) => request({ prompt, seed }));
    const results = runAll(decoder, later);
    expect(first).toBe(1);
    results.forEach((result, i) => {
      expect(result).toEqual({ ...alone(later[i] as DecodeRequest), promptCacheHitTokens: 39 });
    });
  });

  it('never serves one model from the cache of another', () => {
    const decoder = new Decoder({ cachedSequences: 4 });
    const prompt = ids(30);
    runAll(decoder, [request({ prompt })]);
    const foreign = request({ prompt, weights: other });
    expect(runAll(decoder, [foreign])[0]).toEqual(alone(foreign));
  });

  it('gives back what a cancelled request held', () => {
    const decoder = new Decoder({ cachedSequences: 1 });
    const cancelled = decoder.submit(request({ prompt: ids(10), stopTokens: [] }));
    decoder.step();
    decoder.cancel(cancelled);
    expect(decoder.isBusy).toBe(false);
    const next = request({ prompt: ids(10) });
    expect(runAll(decoder, [next])[0]).toEqual(alone(next));
  });
});
