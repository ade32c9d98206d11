import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADAM, STUDENT, TrainerFixture } from './trainer-fixture.ts';
import { decodeLoss, textDatum, type WireClient } from './trainer-process.ts';

let fixture: TrainerFixture;
beforeAll(async () => {
  fixture = await TrainerFixture.start();
});
afterAll(() => fixture.stop());

describe('training', () => {
  it('makes a text more likely in a snapshot taken after it, and in nothing else', async () => {
    const text = 'task copy sun to map\n$ cp sun map\n';
    const base = await fixture.sampler({ base_model: STUDENT });
    const before = await fixture.scores(base, text);
    const model = await fixture.createModel();
    let seq = 0;
    const train = async (): Promise<number> => {
      const output = decodeLoss(await fixture.client.retrieve(await fixture.client.forwardBackward(model, ++seq, [textDatum(text)])));
      await fixture.client.call('optim_step', { model_id: model, seq_id: ++seq, adam_params: ADAM });
      return output.metrics['loss:sum'] ?? Number.NaN;
    };
    const snapshot = async (name: string): Promise<string> => {
      const saved = await fixture.client.call('save_weights_for_sampler', { model_id: model, seq_id: ++seq, path: name, kind: 'snapshot' });
      return fixture.sampler({ model_path: String((saved as Record<string, unknown>).path) });
    };
    const untouched = await snapshot('before');
    const losses = [await train(), await train()];
    const early = await snapshot('early');
    const earlyScores = await fixture.scores(early, text);
    losses.push(await train(), await train());
    const sum = (values: readonly number[]): number => values.slice(1).reduce((a, b) => a + b, 0);
    expect(-(losses[0] ?? 0)).toBeCloseTo(sum(before), 3);
    expect(losses[3]).toBeLessThan((losses[0] ?? 0) - 10);
    expect(-(losses[2] ?? 0)).toBeCloseTo(sum(earlyScores), 3);
    expect(await fixture.scores(early, text)).toEqual(earlyScores);
    expect(await fixture.scores(untouched, text)).toEqual(before);
    expect(await fixture.scores(base, text)).toEqual(before);
  });

  it('goes on from a saved state exactly as the saved model does, in a model created from it', async () => {
    const datum = [textDatum('$ cat key\n')];
    const model = await fixture.createModel();
    const step = async (id: string, seq: number): Promise<Uint8Array> => {
      const result = await fixture.client.retrieve(await fixture.client.forwardBackward(id, seq, datum));
      await fixture.client.call('optim_step', { model_id: id, seq_id: seq + 1, adam_params: ADAM });
      return result as Uint8Array;
    };
    await step(model, 1);
    const saved = await fixture.client.call('save_weights', { model_id: model, seq_id: 3, path: 'half', overwrite: false });
    const path = String((saved as Record<string, unknown>).path);
    const seqId = fixture.nextModelSeqId();
    const copied = await fixture.client.call('load_weights', { session_id: fixture.session, model_seq_id: seqId, path, optimizer: true });
    const copy = `${fixture.session}:train:${seqId}`;
    expect(copied).toMatchObject({ model_id: copy });
    expect(await fixture.client.post('get_info', { model_id: copy })).toMatchObject({ model_name: STUDENT, lora_rank: 4 });
    await step(copy, 1);
    await step(model, 4);
    expect(await step(copy, 3)).toEqual(await step(model, 6));
    expect(await fixture.client.post('weights_info', { tinker_path: path })).toMatchObject({ base_model: STUDENT, lora_rank: 4 });
  });

  it('refuses what cannot be trained on with a message that names it, and goes on with the next number', async () => {
    const model = await fixture.createModel();
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
      const refusal = expect.stringMatching(/forward_backward: 400 .*/);
      const refused = () => fixture.client.forwardBackward(model, i + 1, data, loss).catch((error: Error) => error.message);
      expect(await refused()).toEqual(refusal);
      expect(await refused()).toContain(message);
      expect(await fixture.client.retrieve(`${model}:${i + 1}`)).toEqual({ error: expect.stringContaining(message), category: 'user' });
    }
    const first = cases.length + 1;
    const bodies: [string, Record<string, unknown>, string][] = [
      ['optim_step', { adam_params: { ...ADAM, beta1: 2 } }, 'adam_params.beta1'],
      ['save_weights', { path: '../x', overwrite: false }, 'path'],
      ['load_weights', { path: 'tinker://a/sampler_weights/b', optimizer: true }, 'weights to sample from'],
      ['save_weights_external', { path: 'x' }, 'not served here'],
    ];
    for (const [i, [path, body, message]] of bodies.entries()) {
      const answer = await fixture.client.send('POST', path, { model_id: model, seq_id: first + i, ...body });
      expect(answer).toEqual({ status: 400, body: { detail: expect.stringContaining(message) } });
    }
    const next = first + bodies.length;
    expect(decodeLoss(await fixture.client.retrieve(await fixture.client.forwardBackward(model, next, [good]))).lossFnOutputs).toHaveLength(
      1,
    );
    const conflict = await fixture.client.send('POST', 'optim_step', { model_id: model, seq_id: next, adam_params: ADAM });
    expect(conflict).toEqual({ status: 400, body: { detail: expect.stringContaining(`${next} was a forward_backward call`) } });
  });

  it('lists runs and checkpoints, and removes a checkpoint', async () => {
    const model = await fixture.createModel();
    await fixture.client.call('save_weights', { model_id: model, seq_id: 1, path: 'a', overwrite: false, ttl_seconds: 3600 });
    const list = await fixture.client.send('GET', `training_runs/${model}/checkpoints`);
    expect(list.body.checkpoints).toMatchObject([
      { checkpoint_id: 'weights/a', checkpoint_type: 'training', tinker_path: `tinker://${model}/weights/a` },
    ]);
    expect((await fixture.client.send('PUT', `training_runs/${model}/checkpoints/weights/a/ttl`, { ttl_seconds: null })).status).toBe(204);
    expect((await fixture.client.send('DELETE', `training_runs/${model}/checkpoints/weights/a`)).status).toBe(204);
    expect((await fixture.client.send('GET', `training_runs/${model}/checkpoints`)).body.checkpoints).toEqual([]);
    expect((await fixture.client.send('GET', `training_runs/${model}`)).body).toMatchObject({
      base_model: STUDENT,
      lora_rank: 4,
      last_checkpoint: null,
    });
  });
});
