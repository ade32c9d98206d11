import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Sampler, ServiceFailed, TinkerClient } from '../index.ts';
import { FakeService, ONE_SAMPLE, sampleReply } from '../testing/fake-service.ts';

const PROMPT = Int32Array.of(36, 32, 40);

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

function answer(fields: Partial<typeof ONE_SAMPLE>, promise: object = {}): void {
  service.script('asample', { json: { request_id: 'r', ...promise } });
  service.script('retrieve_future', sampleReply(fields));
}

const [ONE] = ONE_SAMPLE.sequences;
const two = ONE === undefined ? [] : [ONE, { ...ONE, stopReason: 'length' as const, logprobs: null }];

describe('sequences', () => {
  test('come with the ids of the promise', async () => {
    answer({ sequences: two }, { sample_sequence_ids: ['a', 'b'] });
    const { sequences } = await sampler.sampleAll({ prompt: PROMPT, numSamples: 2 });
    expect(sequences.map(({ sequenceId, stop }) => [sequenceId, stop])).toEqual([
      ['a', 'stop'],
      ['b', 'length'],
    ]);
    expect(sequences[1]?.logprobs).toBeNull();
  });

  test('a server without ids is fine', async () => {
    answer({ sequences: two });
    const { sequences } = await sampler.sampleAll({ prompt: PROMPT, numSamples: 2 });
    expect(sequences.map(({ sequenceId }) => sequenceId)).toEqual([null, null]);
  });

  test('another number than was asked for is refused', async () => {
    answer({ sequences: two });
    await expect(sampler.sampleAll({ prompt: PROMPT })).rejects.toThrow('asked for 1 sequences, got 2');
  });
});

describe('the prompt’s scores', () => {
  test.each([
    ['all of them', [Number.NaN, -1, -2]],
    ['without position 0', [-1, -2]],
    ['with a number at position 0', [-9, -1, -2]],
  ])('%s', async (_, given) => {
    answer({ promptLogprobs: Float32Array.from(given) });
    const { promptLogprobs } = await sampler.sampleAll({ prompt: PROMPT, includePromptLogprobs: true });
    expect(promptLogprobs).toEqual(Float32Array.of(Number.NaN, -1, -2));
  });

  test('one more than there are tokens is refused', async () => {
    answer({ promptLogprobs: new Float32Array(4) });
    await expect(sampler.sampleAll({ prompt: PROMPT, includePromptLogprobs: true })).rejects.toThrow(ServiceFailed);
  });

  test('of a prompt with an image have the length that the service says', async () => {
    answer({ promptLogprobs: new Float32Array(70) });
    const image = { type: 'image', data: Uint8Array.of(1, 2), format: 'png' } as const;
    const { promptLogprobs } = await sampler.sampleAll({
      prompt: [{ type: 'encoded_text', tokens: PROMPT }, image],
      includePromptLogprobs: true,
    });
    expect(promptLogprobs).toHaveLength(70);
    expect(service.to('asample')[0]?.json.prompt).toEqual({
      chunks: [
        { tokens: [36, 32, 40], type: 'encoded_text' },
        { data: 'AQI=', format: 'png', type: 'image' },
      ],
    });
  });

  test('of a sequence’s end only: NaN before it', async () => {
    answer({ promptLogprobs: Float32Array.of(Number.NaN, Number.NaN, -2) });
    const { logprobs } = await sampler.promptLogprobs(PROMPT, { lastN: 1 });
    expect(logprobs).toEqual(Float64Array.of(Number.NaN, Number.NaN, -2));
    expect(service.to('asample')[0]?.json.prompt_logprobs_last_n).toBe(1);
  });
});

test('other tokens of the prompt that were asked for and did not come are missed', async () => {
  answer({});
  await expect(sampler.sampleAll({ prompt: PROMPT, promptAltTokensK: 2 })).rejects.toThrow(
    'asked for other tokens of the prompt, got none',
  );
});

test.each([
  [undefined, undefined],
  [[], []],
  [
    [2, 7],
    [2, 7],
  ],
  ['END', 'END'],
  [
    ['a', 'b'],
    ['a', 'b'],
  ],
])('stop %j is sent as it is', async (stop, sent) => {
  await sampler.sampleAll({ prompt: PROMPT, ...(stop === undefined ? {} : { stop }) });
  const params = service.to('asample')[0]?.json.sampling_params as Record<string, unknown>;
  expect(params.stop).toEqual(sent);
  expect('stop' in params).toBe(stop !== undefined);
});
