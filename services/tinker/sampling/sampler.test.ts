import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Sampler, ServiceFailed, TinkerClient, topkRow } from '../index.ts';
import { FakeService, sampleReply } from '../testing/fake-service.ts';
import { TOPK_MASK } from '../wire/index.ts';

const PROMPT = Int32Array.of(36, 32);
const REQUEST = { prompt: PROMPT, maxTokens: 5, temperature: 0.7, stopTokens: [10], seed: 3 };

let service: FakeService;
let client: TinkerClient;
let sampler: Sampler;

beforeEach(async () => {
  service = await FakeService.start();
  client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
  sampler = await client.sampler({ baseModel: 'stillroom/tiny-student' });
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

describe('sample', () => {
  test('tokens, log-probabilities, stop and cache hits', async () => {
    expect(await sampler.sample(REQUEST)).toEqual({
      tokens: Int32Array.of(7, 10),
      logprobs: Float32Array.of(-0.5, -0.25),
      stop: 'stop',
      promptCacheHitTokens: 2,
    });
    expect(sampler.version).toBe('stillroom/tiny-student');
  });

  test('the request is the protocol’s', async () => {
    await sampler.sample(REQUEST);
    const [asample] = service.to('asample');
    expect(asample?.json).toEqual({
      num_samples: 1,
      prompt: { chunks: [{ tokens: [36, 32], type: 'encoded_text' }] },
      sampling_params: { max_tokens: 5, seed: 3, stop: [10], temperature: 0.7, top_k: -1, top_p: 1 },
      sampling_session_id: 'sess:sample:0',
      seq_id: 0,
      prompt_logprobs: false,
      topk_prompt_logprobs: 0,
      topk_sample_logprobs: 0,
      prompt_alt_tokens_k: 0,
      record_stability_info: false,
      type: 'sample',
    });
    expect(asample?.headers).toMatchObject({ 'x-api-key': 'tml-key', 'x-tinker-sampling-backpressure': '1' });
    expect(service.to('retrieve_future')[0]?.headers).toMatchObject({
      accept: 'application/x-protobuf',
      'x-tinker-request-type': 'Sample',
      'x-tinker-request-iteration': '0',
    });
  });

  test('a result as older servers send it', async () => {
    const sequence = { tokens: [5], logprobs: [-1], stop_reason: 'length' };
    service.script('retrieve_future', { json: { type: 'sample', sequences: [sequence] } });
    expect(await sampler.sample(REQUEST)).toEqual({
      tokens: Int32Array.of(5),
      logprobs: Float32Array.of(-1),
      stop: 'length',
      promptCacheHitTokens: 0,
    });
  });
});

describe('prompt log-probabilities', () => {
  test('NaN at 0 and where the service has none', async () => {
    service.script('retrieve_future', sampleReply({ promptLogprobs: Float32Array.of(Number.NaN, -1.5, Number.NaN) }));
    const { logprobs, topk, promptCacheHitTokens } = await sampler.promptLogprobs(Int32Array.of(1, 2, 3));
    expect(logprobs).toEqual(Float64Array.of(Number.NaN, -1.5, Number.NaN));
    expect([topk, promptCacheHitTokens]).toEqual([null, 2]);
    expect(service.to('asample')[0]?.json).toMatchObject({ prompt_logprobs: true, sampling_params: { max_tokens: 1 } });
  });

  test('a server that leaves position 0 out', async () => {
    service.script('retrieve_future', sampleReply({ promptLogprobs: Float32Array.of(-1.5, -2.5) }));
    expect((await sampler.promptLogprobs(Int32Array.of(1, 2, 3))).logprobs).toEqual(Float64Array.of(Number.NaN, -1.5, -2.5));
  });

  test('too short is an error, not zeros', async () => {
    service.script('retrieve_future', sampleReply({ promptLogprobs: Float32Array.of(-1.5) }));
    await expect(sampler.promptLogprobs(Int32Array.of(1, 2, 3))).rejects.toThrow(ServiceFailed);
  });

  test('the likeliest tokens', async () => {
    const topkPromptLogprobs = {
      k: 2,
      length: 2,
      tokenIds: Int32Array.of(0, 0, 7, 8),
      logprobs: Float32Array.of(TOPK_MASK, TOPK_MASK, -0.5, -1),
    };
    service.script('retrieve_future', sampleReply({ promptLogprobs: Float32Array.of(Number.NaN, -1), topkPromptLogprobs }));
    const { topk } = await sampler.promptLogprobs(PROMPT, { topK: 2 });
    expect(topk && [topkRow(topk, 0), topkRow(topk, 1)]).toEqual([
      [],
      [
        { tokenId: 7, logprob: -0.5 },
        { tokenId: 8, logprob: -1 },
      ],
    ]);
    expect(service.to('asample')[0]?.json.topk_prompt_logprobs).toBe(2);
  });

  test('a server that ignores the wish for them', async () => {
    service.script('retrieve_future', sampleReply({ promptLogprobs: Float32Array.of(Number.NaN, -1) }));
    await expect(sampler.promptLogprobs(PROMPT, { topK: 2 })).rejects.toThrow(ServiceFailed);
  });
});
