import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  decodeLoss,
  decodeSample,
  runTrainerProcess,
  startTrainerProcess,
  type Trainer,
  textDatum,
  untrainedWeights,
  WireClient,
} from './trainer-process.ts';

/** The service as its clients meet it: one real process, plain HTTP. */
const state = mkdtempSync(join(tmpdir(), 'trainer-service-'));
const student = 'stillroom/tiny-student';
const adam = { learning_rate: 0.02, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0, grad_clip_norm: 0 };
let weights: string;
let trainer: Trainer;
let client: WireClient;
let session: string;

beforeAll(async () => {
  weights = untrainedWeights();
  trainer = await startTrainerProcess({ state, weights });
  client = new WireClient(trainer.url);
  session = String((await client.post('create_session', { tags: [] })).session_id);
}, 60_000);
afterAll(async () => {
  await trainer.kill('SIGTERM');
  rmSync(state, { recursive: true });
  rmSync(weights, { recursive: true });
});

let models = 0;
async function createModel(): Promise<string> {
  const body = { session_id: session, model_seq_id: models, base_model: student, lora_config: { rank: 4, seed: 1 } };
  models += 1;
  return String(((await client.call('create_model', body)) as Record<string, unknown>).model_id);
}

let samplers = 1000;
async function sampler(source: Record<string, string>): Promise<string> {
  samplers += 1;
  const body = { session_id: session, sampling_session_seq_id: samplers, ...source };
  return String((await client.post('create_sampling_session', body)).sampling_session_id);
}

const textPrompt = (text: string) => ({ chunks: [{ type: 'encoded_text', tokens: [...text].map((char) => char.charCodeAt(0)) }] });
let samples = 0;
const sampleBody = (samplerId: string, more: Record<string, unknown> = {}) => ({
  sampling_session_id: samplerId,
  seq_id: samples++,
  num_samples: 1,
  prompt: textPrompt('files key sun\n$ '),
  sampling_params: { max_tokens: 12, seed: 7, stop: [], temperature: 1, top_k: -1, top_p: 1 },
  ...more,
});
const scores = async (samplerId: string, text: string) => {
  const params = { max_tokens: 1, temperature: 1 };
  const result = await client.call(
    'asample',
    sampleBody(samplerId, { prompt: textPrompt(text), sampling_params: params, prompt_logprobs: true }),
  );
  return decodeSample(result).promptLogprobs ?? [];
};

describe('sampling', () => {
  it('gives logprobs that scoring the same tokens gives again', async () => {
    const id = await sampler({ base_model: student });
    const body = sampleBody(id, { num_samples: 3 });
    const promise = await client.post('asample', body);
    expect(promise.sample_sequence_ids).toHaveLength(3);
    const { sequences } = decodeSample(await client.retrieve(promise.request_id));
    expect(new Set(sequences.map(({ tokens }) => tokens.join())).size).toBe(3);
    for (const { tokens, logprobs } of sequences) {
      const scored = (await scores(id, `files key sun\n$ ${String.fromCharCode(...tokens)}`)).slice(-tokens.length);
      scored.forEach((value, i) => {
        expect(Math.abs(value - (logprobs[i] ?? Number.NaN))).toBeLessThan(1e-5);
      });
    }
  });

  it('is the same for the same seed however much else is sampled, and other for another seed', async () => {
    const id = await sampler({ base_model: student });
    const alone = decodeSample(await client.call('asample', sampleBody(id)));
    const crowd = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        client.call('asample', sampleBody(id, { sampling_params: { max_tokens: 12, seed: i, stop: [] } })),
      ),
    );
    const tokens = crowd.map((result) => decodeSample(result).sequences[0]?.tokens.join());
    expect(decodeSample(crowd[7] ?? {})).toEqual(alone);
    expect(new Set(tokens).size).toBe(20);
  });

  it('answers a repeated sequence number with the first promise, drawn once', async () => {
    const id = await sampler({ base_model: student });
    const { seed: _, ...unseeded } = sampleBody(id).sampling_params;
    const body = sampleBody(id, { sampling_params: unseeded });
    const first = await client.post('asample', body);
    const second = await client.post('asample', body);
    expect(second).toEqual(first);
    expect(await client.retrieve(first.request_id)).toEqual(await client.retrieve(second.request_id));
  });

  it('stops at the end of a turn unless told otherwise, and includes the stop token', async () => {
    const id = await sampler({ base_model: student });
    const params = { max_tokens: 100, seed: 2, temperature: 1 };
    const whole = decodeSample(await client.call('asample', sampleBody(id, { sampling_params: { ...params, stop: [] } }))).sequences[0];
    expect(whole?.tokens).toHaveLength(100);
    const stopToken = whole?.tokens[30] ?? 0;
    const stopped = decodeSample(await client.call('asample', sampleBody(id, { sampling_params: { ...params, stop: [stopToken] } })))
      .sequences[0];
    expect(stopped?.tokens).toEqual(whole?.tokens.slice(0, (whole?.tokens.indexOf(stopToken) ?? 0) + 1));
    expect(stopped?.stopReason).toBe(0);
  });

  it('scores a prompt that fills the context, or only the end of one', async () => {
    const id = await sampler({ base_model: student });
    const all = await scores(id, 'abcdef'.repeat(32));
    expect(all).toHaveLength(192);
    expect(all.slice(1).every(Number.isFinite)).toBe(true);
    const body = sampleBody(id, {
      prompt: textPrompt('abcdef'),
      sampling_params: { max_tokens: 1 },
      prompt_logprobs: true,
      prompt_logprobs_last_n: 2,
    });
    const suffix = decodeSample(await client.call('asample', body)).promptLogprobs ?? [];
    expect(suffix.map(Number.isFinite)).toEqual([false, false, false, false, true, true]);
  });

  it('can be cancelled', async () => {
    const id = await sampler({ base_model: student });
    const busy = Array.from({ length: 64 }, () =>
      client.post('asample', sampleBody(id, { sampling_params: { max_tokens: 170, stop: [] } })),
    );
    const promises = await Promise.all(busy);
    const last = promises.at(-1)?.request_id;
    expect((await client.send('POST', 'cancel_future', { request_id: last })).status).toBe(204);
    expect(await client.retrieve(last)).toMatchObject({ error: expect.stringContaining('cancelled'), category: 'user' });
  });
});

describe('training', () => {
  it('makes a text more likely in a snapshot taken after it, and in nothing else', async () => {
    const text = 'task copy sun to map\n$ cp sun map\n';
    const base = await sampler({ base_model: student });
    const before = await scores(base, text);
    const model = await createModel();
    let seq = 0;
    const train = async (): Promise<number> => {
      const output = decodeLoss(await client.retrieve(await client.forwardBackward(model, ++seq, [textDatum(text)])));
      await client.call('optim_step', { model_id: model, seq_id: ++seq, adam_params: adam });
      return output.metrics['loss:sum'] ?? Number.NaN;
    };
    const snapshot = async (name: string): Promise<string> => {
      const saved = await client.call('save_weights_for_sampler', { model_id: model, seq_id: ++seq, path: name, kind: 'snapshot' });
      return sampler({ model_path: String((saved as Record<string, unknown>).path) });
    };
    const untouched = await snapshot('before');
    const losses = [await train(), await train()];
    const early = await snapshot('early');
    const earlyScores = await scores(early, text);
    losses.push(await train(), await train());
    const sum = (values: readonly number[]): number => values.slice(1).reduce((a, b) => a + b, 0);
    expect(-(losses[0] ?? 0)).toBeCloseTo(sum(before), 3);
    expect(losses[3]).toBeLessThan((losses[0] ?? 0) - 10);
    expect(-(losses[2] ?? 0)).toBeCloseTo(sum(earlyScores), 3);
    expect(await scores(early, text)).toEqual(earlyScores);
    expect(await scores(untouched, text)).toEqual(before);
    expect(await scores(base, text)).toEqual(before);
  });

  it('goes on from a saved state exactly as the saved model does, in a model created from it', async () => {
    const datum = [textDatum('$ cat key\n')];
    const model = await createModel();
    const step = async (id: string, seq: number): Promise<Uint8Array> => {
      const result = await client.retrieve(await client.forwardBackward(id, seq, datum));
      await client.call('optim_step', { model_id: id, seq_id: seq + 1, adam_params: adam });
      return result as Uint8Array;
    };
    await step(model, 1);
    const saved = await client.call('save_weights', { model_id: model, seq_id: 3, path: 'half', overwrite: false });
    const path = String((saved as Record<string, unknown>).path);
    const copied = await client.call('load_weights', { session_id: session, model_seq_id: models, path, optimizer: true });
    const copy = `${session}:train:${models}`;
    models += 1;
    expect(copied).toMatchObject({ model_id: copy });
    expect(await client.post('get_info', { model_id: copy })).toMatchObject({ model_name: student, lora_rank: 4 });
    await step(copy, 1);
    await step(model, 4);
    expect(await step(copy, 3)).toEqual(await step(model, 6));
    expect(await client.post('weights_info', { tinker_path: path })).toMatchObject({ base_model: student, lora_rank: 4 });
  });

  it('fails what cannot be trained on with a message that names it, and goes on', async () => {
    const model = await createModel();
    const good = textDatum('$ ls\n');
    const cases: [string, Parameters<WireClient['forwardBackward']>[2], string][] = [
      ['cross_entropy', [good, { ...good, targets: good.targets.slice(1) }], 'data[1].loss_fn_inputs.target_tokens'],
      ['cross_entropy', [{ ...good, floats: { mask: good.targets } }], "unknown key 'mask'"],
      ['importance_sampling', [{ ...good, floats: { advantages: good.targets } }], "'logprobs' is missing"],
      ['cross_entropy', [{ ...good, tokens: good.tokens.map(() => 128) }], 'token 128 is outside the vocabulary'],
      ['cross_entropy', [textDatum('x'.repeat(194))], 'context is 192'],
      ['cross_entropy', [{ ...good, floats: { weights: good.targets.map(() => Number.NaN) } }], 'weights[0]: NaN'],
      ['dro', [good], "loss_fn: 'dro' is not served here"],
      ['cross_entropy', [], 'data: is empty'],
    ];
    for (const [i, [loss, data, message]] of cases.entries()) {
      const result = await client.retrieve(await client.forwardBackward(model, i + 1, data, loss));
      expect(result).toEqual({ error: expect.stringContaining(message), category: 'user' });
    }
    const next = cases.length + 1;
    const bad = await client.call('optim_step', { model_id: model, seq_id: next, adam_params: { ...adam, beta1: 2 } });
    expect(bad).toEqual({ error: expect.stringContaining('adam_params.beta1'), category: 'user' });
    const name = await client.call('save_weights', { model_id: model, seq_id: next + 1, path: '../x', overwrite: false });
    expect(name).toEqual({ error: expect.stringContaining('path'), category: 'user' });
    expect(decodeLoss(await client.retrieve(await client.forwardBackward(model, next + 2, [good]))).lossFnOutputs).toHaveLength(1);
  });

  it('lists runs and checkpoints, and removes a checkpoint', async () => {
    const model = await createModel();
    await client.call('save_weights', { model_id: model, seq_id: 1, path: 'a', overwrite: false, ttl_seconds: 3600 });
    const list = await client.send('GET', `training_runs/${model}/checkpoints`);
    expect(list.body.checkpoints).toMatchObject([
      { checkpoint_id: 'weights/a', checkpoint_type: 'training', tinker_path: `tinker://${model}/weights/a` },
    ]);
    expect((await client.send('PUT', `training_runs/${model}/checkpoints/weights/a/ttl`, { ttl_seconds: null })).status).toBe(204);
    expect((await client.send('DELETE', `training_runs/${model}/checkpoints/weights/a`)).status).toBe(204);
    expect((await client.send('GET', `training_runs/${model}/checkpoints`)).body.checkpoints).toEqual([]);
    expect((await client.send('GET', `training_runs/${model}`)).body).toMatchObject({
      base_model: student,
      lora_rank: 4,
      last_checkpoint: null,
    });
  });
});

describe('refusals', () => {
  const table: readonly (readonly [string, string, (samplerId: string) => unknown, number, string])[] = [
    [
      'an unknown base model',
      'create_model',
      () => ({ session_id: session, model_seq_id: 99, base_model: 'gpt', lora_config: {} }),
      400,
      'gpt',
    ],
    [
      'an unknown session',
      'create_model',
      () => ({ session_id: 'nope', model_seq_id: 0, base_model: student, lora_config: {} }),
      404,
      'nope',
    ],
    [
      'another optimizer',
      'create_model',
      () => ({ session_id: session, model_seq_id: 99, base_model: student, lora_config: {}, optimizer_config: { type: 'dimuon' } }),
      400,
      'dimuon',
    ],
    [
      'an unknown sampler path',
      'create_sampling_session',
      () => ({ session_id: session, sampling_session_seq_id: 99, model_path: 'tinker://a/sampler_weights/b' }),
      404,
      'tinker://a',
    ],
    ['an unknown sampling session', 'asample', () => sampleBody('nope'), 404, 'nope'],
    [
      'a prompt beyond the context',
      'asample',
      (id) => sampleBody(id, { prompt: textPrompt('x'.repeat(181)) }),
      400,
      'exceed the context of 192',
    ],
    [
      'a token outside the vocabulary',
      'asample',
      (id) => sampleBody(id, { prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 500] }] } }),
      400,
      'token 500',
    ],
    ['an image', 'asample', (id) => sampleBody(id, { prompt: { chunks: [{ type: 'image', data: '', format: 'png' }] } }), 400, 'only text'],
    ['top_p', 'asample', (id) => sampleBody(id, { sampling_params: { max_tokens: 1, top_p: 0.5 } }), 400, 'top_p'],
    ['a call for an unknown model', 'optim_step', () => ({ model_id: 'x:train:0', seq_id: 1, adam_params: adam }), 404, 'x:train:0'],
    ['a training call without a number', 'optim_step', () => ({ model_id: 'x:train:0', adam_params: adam }), 400, 'seq_id'],
    ['an unknown future', 'retrieve_future', () => ({ request_id: 'nope' }), 404, 'nope'],
    ['JSON where protobuf belongs', 'forward_backward', () => ({}), 415, 'protobuf'],
  ];
  it.each(table)('%s', async (_, path, body, status, message) => {
    const id = await sampler({ base_model: student });
    expect(await client.send('POST', path, body(id))).toEqual({ status, body: { detail: expect.stringContaining(message) } });
  });

  it('a missing or foreign key, on everything but healthz', async () => {
    for (const key of ['', 'sk-1']) {
      expect((await new WireClient(trainer.url, key).send('GET', 'get_server_capabilities')).status).toBe(401);
      expect((await new WireClient(trainer.url, key).send('GET', 'healthz')).status).toBe(200);
    }
  });
});

describe('starting', () => {
  it('fails with exit code 2 and a message for a busy port, a state folder in use, and missing weights', async () => {
    const port = Number(new URL(trainer.url).port);
    const other = mkdtempSync(join(tmpdir(), 'trainer-other-'));
    const [busy, shared, bare] = await Promise.all([
      runTrainerProcess({ state: other, weights, port }),
      runTrainerProcess({ state, weights }),
      runTrainerProcess({ state: other, weights: other }),
    ]);
    expect(busy).toEqual({ code: 2, stderr: expect.stringContaining(`--port ${port}: the port is in use`) });
    expect(shared).toEqual({ code: 2, stderr: expect.stringContaining('another trainer is using this folder') });
    expect(bare).toEqual({ code: 2, stderr: expect.stringContaining('tiny-teacher.safetensors is missing') });
    rmSync(other, { recursive: true });
  }, 60_000);

  it('with --api-key lets in that key only', async () => {
    const other = mkdtempSync(join(tmpdir(), 'trainer-key-'));
    const strict = await startTrainerProcess({ state: other, weights, apiKey: 'tml-secret' });
    expect((await new WireClient(strict.url, 'tml-other').send('GET', 'get_server_capabilities')).status).toBe(401);
    expect((await new WireClient(strict.url, 'tml-secret').send('GET', 'get_server_capabilities')).status).toBe(200);
    await strict.kill('SIGTERM');
    rmSync(other, { recursive: true });
  }, 60_000);
});
