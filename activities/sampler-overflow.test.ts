import { describe, expect, it } from 'vitest';
import type { TrialId } from '../core/ids.ts';
import { rendererFor, type SampleRequest, SamplerOverflow, startGateway } from '../services/gateway/index.ts';
import { BadRequest, BillingPaused, callFate, RetryLater, ServiceFailed, type TinkerClient } from '../services/tinker/index.ts';
import { forGateway, ModelAccess } from './model-access.ts';
import { overflowIn } from './sampler-overflow.ts';

const MODEL = { kind: 'base', model: 'student', version: 'student' } as const;
const failed = (detail: string, Kind: typeof BadRequest | typeof ServiceFailed = BadRequest, status: number | null = 400) =>
  new Kind(`the service rejects the request: ${detail}`, { call: 'asample', status, detail });

/** The words, and the limit that they name. */
const WORDINGS: [string, string, number | null][] = [
  ['embedded', 'sampling_params.max_tokens: prompt (180) and max_tokens (28) exceed the context of 192', 192],
  ['embedded, served less', 'prompt (90) and max_tokens (28) need a context of 118 tokens, more than the 100 that are served', 100],
  ['hosted', 'Prompt length plus max_tokens exceeds the context window of this model: 40000 + 8192', null],
  [
    'vLLM',
    'The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller',
    8192,
  ],
  [
    'OpenAI-like',
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion)",
    8192,
  ],
  ['SGLang', "The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192],
  ['SGLang, its check', 'Input length (9000 tokens) exceeds the maximum allowed length (8187 tokens). Use a shorter input', 8187],
  ['Anthropic-like', 'prompt is too long: 215000 tokens > 200000 maximum', 200_000],
];

describe('a prompt that is too long for the service', () => {
  it.each(WORDINGS)('%s: %s', (_, words, limitTokens) => {
    expect(overflowIn(failed(words))).toEqual({ limitTokens });
    expect(overflowIn(failed(words, ServiceFailed, null))).toEqual({ limitTokens });
  });

  it.each([
    ['another fault of the request', failed('max_tokens must not be greater than 4096')],
    ['a deadline', failed('rpc error: context deadline exceeded', ServiceFailed, null)],
    ['a full queue', new RetryLater('the service is busy (429: too many tokens in flight)', { call: 'asample', status: 429 })],
    ['an unpaid account', new BillingPaused('pay; then the context length is 1 million', { call: 'asample', status: 402 })],
    ['an error of our own', new Error('maximum context length is 5')],
  ])('is not %s', (_, error) => expect(overflowIn(error)).toBeNull());

  it('costs nothing, also where the service had taken the call first', async () => {
    const sample = () =>
      Promise.reject(failed('The decoder prompt (length 9) is longer than the maximum model length of 8', ServiceFailed, null));
    const models = new ModelAccess(async () => ({ sampler: async () => ({ sample }) }) as unknown as TinkerClient);
    const request: SampleRequest = { prompt: new Int32Array(9), maxTokens: 4, temperature: 1, stopTokens: [] };
    const error = await models
      .tokenSampler(MODEL)
      .sample(request)
      .catch((error) => error);
    expect(callFate(error)).toBe('refused');
    await expect(forGateway(models.tokenSampler(MODEL)).sample(request)).rejects.toMatchObject({ promptTokens: 9, limitTokens: 8 });
    await expect(forGateway(models.tokenSampler(MODEL)).sample(request)).rejects.toBeInstanceOf(SamplerOverflow);
  });
});

it.each(WORDINGS)(
  '%s: the agent hears what agents understand, and the trial is an overflow, not a failing model',
  async (_, words, limit) => {
    await using gateway = await startGateway({ host: '127.0.0.1', port: 0 });
    let asked = 0;
    const sample = () => {
      asked++;
      return Promise.reject(failed(words));
    };
    await using session = gateway.open({
      trialId: 'trial' as TrialId,
      modelName: 'student',
      sampler: forGateway({ version: 'student', sample }),
      renderer: rendererFor({ name: 'stillroom_tiny' }),
      contextLimitTokens: 1000,
      maxTokensPerCall: 10,
      temperature: 1,
    });
    const response = await fetch(`${session.apiBase}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'student', messages: [{ role: 'user', content: 'files a' }] }),
    });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect(error.code).toBe('context_length_exceeded');
    expect(error.message).toMatch(new RegExp(`maximum context length is ${limit ?? 10} tokens.*reduce the length of the messages`));
    expect(session.record()).toMatchObject({ overflow: true, failure: null, calls: 0 });
    expect(asked).toBe(1);
  },
);
