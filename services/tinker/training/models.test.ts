import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BadRequest, TinkerClient } from '../index.ts';
import type { StatePath } from '../paths.ts';
import { FakeService } from '../testing/fake-service.ts';

const STATE = 'tinker://run/weights/a' as StatePath;

let service: FakeService;
let client: TinkerClient;

beforeEach(async () => {
  service = await FakeService.start();
  client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

const bodies = (path: string) => service.to(path).map(({ json }) => json);

test('a model for another optimizer', async () => {
  const { modelId } = await client.createModel({ baseModel: 'm', rank: 8, optimizerType: 'dimuon' });
  expect(bodies('create_model')[0]?.optimizer_config).toEqual({ type: 'dimuon', version: 1 });
  await client.training(modelId, { nextSeqId: 1 }).optimStep({ optimizer: 'dimuon', learningRate: 1e-2 });
  expect(bodies('optim_step')[0]).toEqual({
    model_id: modelId,
    seq_id: 1,
    optimizer_params: { type: 'dimuon', learning_rate: 1e-2, beta1: 0.9, grad_clip_norm: 0 },
    type: 'optim_step',
  });
});

describe('from saved state', () => {
  test('one call, with what was given only', async () => {
    const options = { optimizer: true, weightsAccessToken: 'tok', userMetadata: { k: 'v' } };
    expect(await client.createModelFromState(STATE, options)).toEqual({ modelId: 'sess:train:0', nextSeqId: 1 });
    expect(bodies('load_weights')).toEqual([
      {
        session_id: 'sess',
        model_seq_id: 0,
        path: STATE,
        optimizer: true,
        weights_access_token: 'tok',
        user_metadata: { k: 'v' },
        type: 'load_weights',
      },
    ]);
    expect(service.to('weights_info')).toEqual([]);
  });

  test('a server of before that: the saved model’s own rank and switches, then its first call loads', async () => {
    service.script('load_weights', { status: 422, json: { detail: 'model_id missing' } });
    service.script('weights_info', { json: { base_model: 'm', is_lora: true, lora_rank: 4, train_unembed: false, train_mlp: null } });
    expect(await client.createModelFromState(STATE, { optimizer: true })).toEqual({ modelId: 'sess:train:0', nextSeqId: 2 });
    expect(bodies('create_model')[0]).toMatchObject({
      base_model: 'm',
      lora_config: { rank: 4, train_unembed: false, train_mlp: true, train_attn: true },
    });
    expect(bodies('load_weights')[1]).toEqual({ model_id: 'sess:train:0', seq_id: 1, path: STATE, optimizer: true, type: 'load_weights' });
  });

  test('a server of before that which does not know the rank: it must be given', async () => {
    service.script('load_weights', { status: 422, json: { detail: 'model_id missing' } });
    service.script('weights_info', { json: { base_model: 'm' } });
    const made = client.createModelFromState(STATE, { optimizer: true });
    await expect(made).rejects.toThrow(BadRequest);
    await expect(made).rejects.toThrow('give baseModel and rank');
  });

  test('a server of before that: the saved switches also when the rank is given', async () => {
    service.script('load_weights', { status: 422, json: { detail: 'model_id missing' } });
    service.usually('weights_info', {
      json: { base_model: 'm', lora_rank: 4, train_unembed: false, optimizer_config: { type: 'dimuon' } },
    });
    await client.createModelFromState(STATE, { optimizer: true, baseModel: 'm', rank: 4 });
    expect(bodies('create_model')[0]).toMatchObject({
      lora_config: { rank: 4, train_unembed: false },
      optimizer_config: { type: 'dimuon' },
    });
  });

  test.each([
    [{ rank: 8 }, 'rank is 8, but 4'],
    [{ rank: 4, trainUnembed: true }, 'trainUnembed is true, but false'],
  ])('what the saved model has otherwise is refused, not ignored: %j', async (given, said) => {
    service.usually('weights_info', { json: { base_model: 'm', lora_rank: 4, train_unembed: false } });
    await expect(client.createModelFromState(STATE, { optimizer: true, ...given })).rejects.toThrow(said);
    expect(service.to('load_weights')).toEqual([]);
  });
});
