import { describe, expect, it } from 'vitest';
import { firedBy, on, putFaults } from '../support/faults.ts';
import { withFaultyTrainer } from '../support/faulty-trainer.ts';
import { ADAM, STUDENT, type TrainerFixture, textPrompt } from '../trainer-fixture.ts';
import { decodeLoss, textDatum } from '../trainer-process.ts';

/** Faults of the trainer's plan about what it keeps and what it takes. */

let fixture: TrainerFixture;
let url: string;
withFaultyTrainer((started) => {
  fixture = started;
  url = fixture.trainer.url;
});

const datum = textDatum('cp sun map\n');
const status = async (path: string, body: unknown) => (await fixture.client.send('POST', path, body)).status;

/** One update; returns the loss before it. */
async function update(model: string, seq: number): Promise<number | undefined> {
  const result = decodeLoss(await fixture.client.retrieve(await fixture.client.forwardBackward(model, seq, [datum])));
  await fixture.client.call('optim_step', { model_id: model, seq_id: seq + 1, adam_params: ADAM });
  return result.metrics['loss:sum'];
}

/** A model from a checkpoint, and its losses over two updates. */
async function continued(path: string, optimizer: boolean): Promise<readonly unknown[]> {
  const body = { session_id: fixture.session, model_seq_id: fixture.nextModelSeqId(), path, optimizer };
  const { model_id: model } = (await fixture.client.call('load_weights', body)) as { model_id: string };
  return [await update(model, 1), await update(model, 3), await update(model, 5)];
}

describe('drop_moments', () => {
  it('restores the weights only, though a load with the optimizer says it went well', async () => {
    const model = await fixture.createModel();
    for (const seq of [1, 3, 5]) await update(model, seq);
    const { path } = (await fixture.client.call('save_weights', { model_id: model, seq_id: 7, path: 's', overwrite: false })) as {
      path: string;
    };
    const uninterrupted = [await update(model, 8), await update(model, 10), await update(model, 12)];
    await putFaults(url, on('load_weights', { kind: 'drop_moments' }));
    const cold = await continued(path, false);
    expect(await firedBy(url)).toEqual([0]);
    expect(await continued(path, true)).toEqual(cold);
    expect(await continued(path, true)).toEqual(uninterrupted);
    expect(cold).not.toEqual(uninterrupted);
    expect(await firedBy(url)).toEqual([1]);
  });

  it('happens to a load into an existing model too', async () => {
    const model = await fixture.createModel();
    await update(model, 1);
    const { path } = (await fixture.client.call('save_weights', { model_id: model, seq_id: 3, path: 's', overwrite: false })) as {
      path: string;
    };
    const cold = await continued(path, false);
    await putFaults(url, on('load_weights', { kind: 'drop_moments' }));
    expect(await fixture.client.call('load_weights', { model_id: model, seq_id: 4, path, optimizer: true })).toMatchObject({ path });
    expect([await update(model, 5), await update(model, 7), await update(model, 9)]).toEqual(cold);
  });
});

describe('context_limit', () => {
  it('refuses what is longer and tells the nominal limit still', async () => {
    const sampler = await fixture.sampler({ base_model: STUDENT });
    const model = await fixture.createModel();
    await putFaults(url, on('*', { kind: 'context_limit', tokens: 30 }));
    const sample = (length: number, maxTokens: number, more = {}) =>
      fixture.client.send('POST', 'asample', {
        ...fixture.sampleBody(sampler),
        prompt: textPrompt('a'.repeat(length)),
        sampling_params: { max_tokens: maxTokens },
        ...more,
      });
    expect((await sample(20, 10)).status).toBe(200);
    expect(await sample(20, 11)).toEqual({
      status: 400,
      body: { detail: 'prompt (20) and max_tokens (11) need a context of 31 tokens, more than the 30 that are served' },
    });
    expect((await sample(30, 1, { prompt_logprobs: true })).status).toBe(200);
    expect((await sample(31, 1, { prompt_logprobs: true })).status).toBe(400);
    await fixture.client.forwardBackward(model, 1, [datum, textDatum('a'.repeat(31))]);
    await expect(fixture.client.forwardBackward(model, 2, [datum, textDatum('a'.repeat(32))])).rejects.toThrow(
      '400 {"detail":"data[1] (31) need a context of 31 tokens, more than the 30 that are served"}',
    );
    const { body } = await fixture.client.send('GET', 'get_server_capabilities');
    expect(body).toMatchObject({ supported_models: [{ max_context_length: 192 }, { max_context_length: 192 }] });
    expect(await firedBy(url)).toEqual([3]);
  });
});

describe('named_save_does_not_persist', () => {
  it('answers a path that is neither listed nor sampled from', async () => {
    const model = await fixture.createModel();
    await putFaults(url, on('save_weights_for_sampler', { kind: 'named_save_does_not_persist' }));
    const save = (seq: number, name: string) =>
      fixture.client.call('save_weights_for_sampler', { model_id: model, seq_id: seq, path: name, kind: 'snapshot' });
    const lost = `tinker://${model}/sampler_weights/lost`;
    const kept = `tinker://${model}/sampler_weights/kept`;
    expect(await save(1, 'lost')).toMatchObject({ path: lost });
    expect(await save(2, 'kept')).toMatchObject({ path: kept });
    const { body } = await fixture.client.send('GET', `training_runs/${model}/checkpoints`);
    expect(body).toMatchObject({ checkpoints: [{ tinker_path: kept }] });
    const open = (path: string, n: number) =>
      status('create_sampling_session', { session_id: fixture.session, sampling_session_seq_id: n, model_path: path });
    expect([await open(lost, 501), await open(kept, 502)]).toEqual([404, 200]);
  });
});

describe('what is lost', () => {
  it.each([404, 410] as const)('a model, from its n-th call on (%d)', async (lost) => {
    const [model, other] = [await fixture.createModel(), await fixture.createModel()];
    await putFaults(url, on('optim_step', { kind: 'lost_model', status: lost }, { nth: 2 }));
    const step = (id: string, seq: number) => status('optim_step', { model_id: id, seq_id: seq, adam_params: ADAM });
    expect([await step(model, 1), await step(model, 2), await step(model, 2)]).toEqual([200, lost, lost]);
    expect(await status('get_info', { model_id: model })).toBe(lost);
    expect(await status('retrieve_future', { request_id: `${model}:1` })).toBe(lost);
    await expect(fixture.client.forwardBackward(model, 2, [datum])).rejects.toThrow(String(lost));
    expect([await step(other, 1), await status('session_heartbeat', { session_id: fixture.session })]).toEqual([200, 200]);
    await putFaults(url);
    expect(await step(model, 2)).toBe(200);
  });

  it.each([404, 410] as const)('a session with all that is in it (%d)', async (lost) => {
    const model = await fixture.createModel();
    const sampler = await fixture.sampler({ base_model: STUDENT });
    await putFaults(url, on('session_heartbeat', { kind: 'lost_session', status: lost }, { nth: 2 }));
    const beat = () => status('session_heartbeat', { session_id: fixture.session });
    expect([await beat(), await beat(), await beat()]).toEqual([200, lost, lost]);
    expect(await status('get_info', { model_id: model })).toBe(lost);
    expect(await status('asample', fixture.sampleBody(sampler))).toBe(lost);
    expect(await status('create_sampling_session', { session_id: fixture.session, sampling_session_seq_id: 1, base_model: STUDENT })).toBe(
      lost,
    );
    expect(await status('create_session', {})).toBe(200);
    expect(await firedBy(url)).toEqual([1]);
  });
});
