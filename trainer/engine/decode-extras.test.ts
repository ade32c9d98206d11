import { describe, expect, it } from 'vitest';
import { Decoder } from './decoder.ts';
import { naiveDistributions } from './naive-model.ts';
import type { DecodeRequest, DecodeResult, ModelShape } from './types.ts';
import { initialWeights } from './weights.ts';

const SHAPE: ModelShape = { vocab: 24, width: 16, layers: 2, heads: 2, hidden: 20, context: 48 };
const plain = initialWeights(SHAPE, 1);
const weights = { ...plain, values: plain.values.map((value, i) => (i < SHAPE.vocab * SHAPE.width ? 2.5 * value : value)) };
const prompt = Int32Array.of(3, 9, 1, 22, 9, 4);

const decode = (changes: Partial<DecodeRequest>): DecodeResult => {
  const decoder = new Decoder({ cachedSequences: 1, shape: SHAPE });
  const base = { weights, prompt, maxTokens: 20, temperature: 1, stopTokens: [], seed: 5, promptLogprobs: false, topkPromptLogprobs: 0 };
  decoder.submit({ ...base, ...changes });
  for (;;) for (const { result } of decoder.step()) return result;
};

const whole = decode({});

describe('what a request may ask for besides', () => {
  it('a run of tokens that ends the answer; part of the answer, looked for in the answer only', () => {
    const run = [...whole.tokens.slice(7, 10)];
    const { tokens, stop } = decode({ stopSequences: [[0, 0, 0, 0, 0], run] });
    const text = whole.tokens.join();
    expect(tokens.join()).toBe(text.slice(0, text.indexOf(run.join()) + run.join().length));
    expect(stop).toBe('stop');
    const acrossPrompt = [prompt.at(-1) as number, whole.tokens[0] as number];
    expect(decode({ stopSequences: [acrossPrompt], maxTokens: 1 }).stop).toBe('length');
  });

  it('the likeliest tokens per sampled token, of the distribution sampled from', () => {
    const { topkSampledLogprobs: table, tokens, logprobs } = decode({ topkSampledLogprobs: SHAPE.vocab, temperature: 0.7 });
    expect(tokens).toEqual(decode({ temperature: 0.7 }).tokens);
    expect(table?.tokenIds.length).toBe(20 * SHAPE.vocab);
    tokens.forEach((token, i) => {
      const row = Array.from(table?.tokenIds.slice(i * SHAPE.vocab, (i + 1) * SHAPE.vocab) ?? []);
      const values = table?.logprobs.slice(i * SHAPE.vocab, (i + 1) * SHAPE.vocab) ?? new Float32Array();
      expect(values[row.indexOf(token)]).toBeCloseTo(logprobs[i] as number, 5);
      expect(Math.abs(values.reduce((sum, value) => sum + Math.exp(value), 0) - 1)).toBeLessThan(1e-4);
      expect(values).toEqual(values.toSorted((a, b) => b - a));
    });
  });

  it('log-probabilities of chosen tokens at chosen positions', () => {
    const distributions = naiveDistributions(weights, prompt);
    const promptTargets = { rows: Int32Array.of(0, 4, 2, 2), ids: Int32Array.of(7, 23, -1, 0) };
    const { promptTargetLogprobs: scores, tokens } = decode({ promptTargets });
    expect(tokens).toEqual(whole.tokens);
    [0, 1, 3].forEach((cell) => {
      const expected = distributions[promptTargets.rows[cell] as number]?.[promptTargets.ids[cell] as number] as number;
      expect(scores?.[cell]).toBeCloseTo(expected, 4);
    });
    expect(scores?.[2]).toBeNaN();
  });

  it('other tokens for every prompt position, drawn by themselves', () => {
    const distributions = naiveDistributions(weights, prompt);
    const { promptAlternatives: table, tokens } = decode({ promptAlternatives: 12 });
    expect(tokens).toEqual(whole.tokens);
    expect(table?.tokenIds.length).toBe((prompt.length - 1) * 12);
    table?.tokenIds.forEach((id, i) => {
      expect(table.logprobs[i]).toBeCloseTo(distributions[Math.floor(i / 12)]?.[id] as number, 4);
    });
    expect(new Set(table?.tokenIds.slice(0, 12)).size).toBeGreaterThan(2);
    expect(decode({ promptAlternatives: 12 }).promptAlternatives).toEqual(table);
  });

  it.each([
    ['top_k', { topK: 0 }],
    ['top_p', { topP: 0 }],
    ['topk_sample_logprobs', { topkSampledLogprobs: 25 }],
    ['prompt_alt_tokens_k', { promptAlternatives: -1 }],
    ['target_prompt_logprobs', { promptTargets: { rows: Int32Array.of(5), ids: Int32Array.of(1) } }],
    ['target_prompt_logprobs', { promptTargets: { rows: Int32Array.of(0), ids: Int32Array.of(24) } }],
  ] as const)('refuses what it cannot do by the name of the field: %s', (field, changes) => {
    expect(() => decode(changes)).toThrow(field);
  });
});
