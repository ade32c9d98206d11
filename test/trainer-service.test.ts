import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADAM, STUDENT, TrainerFixture, textPrompt } from './trainer-fixture.ts';
import { decodeSample, runTrainerProcess, startTrainerProcess, WireClient } from './trainer-process.ts';

let fixture: TrainerFixture;
beforeAll(async () => {
  fixture = await TrainerFixture.start();
});
afterAll(() => fixture.stop());

describe('sampling', () => {
  it('gives logprobs that scoring the same tokens gives again', async () => {
    const id = await fixture.sampler({ base_model: STUDENT });
    const body = fixture.sampleBody(id, { num_samples: 3 });
    const promise = await fixture.client.post('asample', body);
    expect(promise.sample_sequence_ids).toHaveLength(3);
    const { sequences } = decodeSample(await fixture.client.retrieve(promise.request_id));
    expect(new Set(sequences.map(({ tokens }) => tokens.join())).size).toBe(3);
    for (const { tokens, logprobs } of sequences) {
      const scored = (await fixture.scores(id, `files key sun\n$ ${String.fromCharCode(...tokens)}`)).slice(-tokens.length);
      scored.forEach((value, i) => {
        expect(Math.abs(value - (logprobs[i] ?? Number.NaN))).toBeLessThan(1e-5);
      });
    }
  });

  it('is the same for the same seed however much else is sampled, and other for another seed', async () => {
    const id = await fixture.sampler({ base_model: STUDENT });
    const alone = decodeSample(await fixture.client.call('asample', fixture.sampleBody(id)));
    const crowd = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        fixture.client.call('asample', fixture.sampleBody(id, { sampling_params: { max_tokens: 12, seed: i, stop: [] } })),
      ),
    );
    const tokens = crowd.map((result) => decodeSample(result).sequences[0]?.tokens.join());
    expect(decodeSample(crowd[7] ?? {})).toEqual(alone);
    expect(new Set(tokens).size).toBe(20);
  });

  it('answers a repeated sequence number with the first promise, drawn once', async () => {
    const id = await fixture.sampler({ base_model: STUDENT });
    const body = fixture.sampleBody(id, { sampling_params: { max_tokens: 12, stop: [] } });
    const first = await fixture.client.post('asample', body);
    const second = await fixture.client.post('asample', body);
    expect(second).toEqual(first);
    expect(await fixture.client.retrieve(first.request_id)).toEqual(await fixture.client.retrieve(second.request_id));
  });

  it('stops at the end of a turn unless told otherwise, and includes the stop token', async () => {
    const id = await fixture.sampler({ base_model: STUDENT });
    const params = { max_tokens: 100, seed: 2, temperature: 1 };
    const whole = decodeSample(await fixture.client.call('asample', fixture.sampleBody(id, { sampling_params: { ...params, stop: [] } })))
      .sequences[0];
    expect(whole?.tokens).toHaveLength(100);
    const stopToken = whole?.tokens[30] ?? 0;
    const stopped = decodeSample(
      await fixture.client.call('asample', fixture.sampleBody(id, { sampling_params: { ...params, stop: [stopToken] } })),
    ).sequences[0];
    expect(stopped?.tokens).toEqual(whole?.tokens.slice(0, (whole?.tokens.indexOf(stopToken) ?? 0) + 1));
    expect(stopped?.stopReason).toBe(0);
  });

  it('scores a prompt that fills the context, or only the end of one', async () => {
    const id = await fixture.sampler({ base_model: STUDENT });
    const all = await fixture.scores(id, 'abcdef'.repeat(32));
    expect(all).toHaveLength(192);
    expect(all.slice(1).every(Number.isFinite)).toBe(true);
    const body = fixture.sampleBody(id, {
      prompt: textPrompt('abcdef'),
      sampling_params: { max_tokens: 1 },
      prompt_logprobs: true,
      prompt_logprobs_last_n: 2,
    });
    const suffix = decodeSample(await fixture.client.call('asample', body)).promptLogprobs ?? [];
    expect(suffix.map(Number.isFinite)).toEqual([false, false, false, false, true, true]);
  });

  it('can be cancelled', async () => {
    const id = await fixture.sampler({ base_model: STUDENT });
    const busy = Array.from({ length: 64 }, () =>
      fixture.client.post('asample', fixture.sampleBody(id, { sampling_params: { max_tokens: 170, stop: [] } })),
    );
    const promises = await Promise.all(busy);
    const last = promises.at(-1)?.request_id;
    expect((await fixture.client.send('POST', 'cancel_future', { request_id: last })).status).toBe(204);
    expect(await fixture.client.retrieve(last)).toMatchObject({ error: expect.stringContaining('cancelled'), category: 'user' });
  });
});

describe('refusals', () => {
  const table: readonly (readonly [string, string, (samplerId: string) => unknown, number, string])[] = [
    [
      'an unknown base model',
      'create_model',
      () => ({ session_id: fixture.session, model_seq_id: 99, base_model: 'gpt', lora_config: {} }),
      400,
      'gpt',
    ],
    [
      'an unknown session',
      'create_model',
      () => ({ session_id: 'nope', model_seq_id: 0, base_model: STUDENT, lora_config: {} }),
      404,
      'nope',
    ],
    [
      'another optimizer',
      'create_model',
      () => ({ session_id: fixture.session, model_seq_id: 99, base_model: STUDENT, lora_config: {}, optimizer_config: { type: 'dimuon' } }),
      400,
      'dimuon',
    ],
    [
      'an unknown sampler path',
      'create_sampling_session',
      () => ({ session_id: fixture.session, sampling_session_seq_id: 99, model_path: 'tinker://a/sampler_weights/b' }),
      404,
      'tinker://a',
    ],
    ['an unknown sampling session', 'asample', () => fixture.sampleBody('nope'), 404, 'nope'],
    [
      'a prompt beyond the context',
      'asample',
      (id) => fixture.sampleBody(id, { prompt: textPrompt('x'.repeat(181)) }),
      400,
      'prompt (181) and max_tokens (12) exceed the context of 192',
    ],
    [
      'a token outside the vocabulary',
      'asample',
      (id) => fixture.sampleBody(id, { prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 500] }] } }),
      400,
      'token 500 at 1',
    ],
    [
      'a token beyond 32 bits, in a second chunk',
      'asample',
      (id) =>
        fixture.sampleBody(id, { prompt: { chunks: [...textPrompt('ab').chunks, { type: 'encoded_text', tokens: [1, 2 ** 32 + 1] }] } }),
      400,
      'token 4294967297 at 3 is outside the vocabulary (0 to 127)',
    ],
    [
      'a target beyond 32 bits',
      'asample',
      (id) =>
        fixture.sampleBody(id, {
          prompt: textPrompt('abc'),
          target_prompt_logprobs: { data: [1, 2 ** 32 + 1], dtype: 'int64', shape: [2, 1] },
        }),
      400,
      'target_prompt_logprobs: token 4294967297 at 1',
    ],
    [
      'a stop beyond 32 bits',
      'asample',
      (id) => fixture.sampleBody(id, { sampling_params: { max_tokens: 1, stop: [2 ** 32 + 10] } }),
      400,
      'stop: 4294967306',
    ],
    [
      'an image',
      'asample',
      (id) => fixture.sampleBody(id, { prompt: { chunks: [{ type: 'image', data: '', format: 'png' }] } }),
      400,
      'only text',
    ],
    [
      'no part of the distribution',
      'asample',
      (id) => fixture.sampleBody(id, { sampling_params: { max_tokens: 1, top_p: 0 } }),
      400,
      'top_p',
    ],
    ['no tokens to draw from', 'asample', (id) => fixture.sampleBody(id, { sampling_params: { max_tokens: 1, top_k: 0 } }), 400, 'top_k'],
    ['a stop that is no ASCII', 'asample', (id) => fixture.sampleBody(id, { sampling_params: { max_tokens: 1, stop: 'é' } }), 400, 'é'],
    ['an empty stop', 'asample', (id) => fixture.sampleBody(id, { sampling_params: { max_tokens: 1, stop: [''] } }), 400, 'stop'],
    ['more candidates than there are', 'asample', (id) => fixture.sampleBody(id, { topk_sample_logprobs: 65 }), 400, 'send 1 to 64'],
    [
      'a suffix as long as the prompt',
      'asample',
      (id) => fixture.sampleBody(id, { prompt_logprobs: true, prompt_logprobs_last_n: 16 }),
      400,
      '16',
    ],
    ['a suffix without scores', 'asample', (id) => fixture.sampleBody(id, { prompt_logprobs_last_n: 2 }), 400, 'needs prompt_logprobs'],
    [
      'targets of another shape',
      'asample',
      (id) => fixture.sampleBody(id, { target_prompt_logprobs: { data: [1], dtype: 'int64', shape: [1, 1] } }),
      400,
      'it must be [15, K]',
    ],
    [
      'training state to sample from',
      'create_sampling_session',
      () => ({ session_id: fixture.session, sampling_session_seq_id: 99, model_path: 'tinker://a/weights/b' }),
      400,
      'sampler_weights/<name>',
    ],
    [
      'a sampler path as state of a new model',
      'load_weights',
      () => ({ session_id: fixture.session, model_seq_id: 98, path: 'tinker://a/sampler_weights/b', optimizer: false }),
      400,
      "path: 'tinker://a/sampler_weights/b' are weights to sample from",
    ],
    ['a call for an unknown model', 'optim_step', () => ({ model_id: 'x:train:0', seq_id: 1, adam_params: ADAM }), 404, 'x:train:0'],
    ['a training call without a number', 'optim_step', () => ({ model_id: 'x:train:0', adam_params: ADAM }), 400, 'seq_id'],
    ['an unknown future', 'retrieve_future', () => ({ request_id: 'nope' }), 404, 'nope'],
    ['JSON where protobuf belongs', 'forward_backward', () => ({}), 415, 'protobuf'],
  ];
  it.each(table)('%s', async (_, path, body, status, message) => {
    const id = await fixture.sampler({ base_model: STUDENT });
    expect(await fixture.client.send('POST', path, body(id))).toEqual({ status, body: { detail: expect.stringContaining(message) } });
  });

  it('a missing or foreign key, on everything but healthz', async () => {
    for (const key of ['', 'sk-1']) {
      expect((await new WireClient(fixture.trainer.url, key).send('GET', 'get_server_capabilities')).status).toBe(401);
      expect((await new WireClient(fixture.trainer.url, key).send('GET', 'healthz')).status).toBe(200);
    }
  });
});

describe('starting', () => {
  it('fails with exit code 2 and a message for a busy port, a state folder in use, and missing weights', async () => {
    const port = Number(new URL(fixture.trainer.url).port);
    const other = mkdtempSync(join(tmpdir(), 'trainer-other-'));
    const [busy, shared, bare] = await Promise.all([
      runTrainerProcess({ state: other, weights: fixture.weights, port }),
      runTrainerProcess({ state: fixture.state, weights: fixture.weights, env: { TMPDIR: other } }),
      runTrainerProcess({ state: other, weights: other }),
    ]);
    expect(busy).toEqual({ code: 2, stderr: expect.stringContaining(`--port ${port}: the port is in use`) });
    expect(shared).toEqual({ code: 2, stderr: expect.stringContaining('another trainer is using this folder') });
    expect(bare).toEqual({ code: 2, stderr: expect.stringContaining('tiny-teacher.safetensors is missing') });
    rmSync(other, { recursive: true });
  }, 60_000);

  it('with --api-key lets in that key only', async () => {
    const other = mkdtempSync(join(tmpdir(), 'trainer-key-'));
    const strict = await startTrainerProcess({ state: other, weights: fixture.weights, apiKey: 'tml-secret' });
    for (const key of ['', 'tml-other']) {
      expect(await new WireClient(strict.url, key).send('GET', 'get_server_capabilities')).toEqual({
        status: 401,
        body: { detail: 'this service takes one key only, and X-API-Key is not it' },
      });
    }
    expect((await new WireClient(strict.url, 'tml-secret').send('GET', 'get_server_capabilities')).status).toBe(200);
    await strict.kill('SIGTERM');
    rmSync(other, { recursive: true });
  }, 60_000);
});
