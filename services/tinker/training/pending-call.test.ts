import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  BadRequest,
  BillingPaused,
  CredentialRefused,
  parseSavedCall,
  type SavedCall,
  TinkerClient,
  TrainingStateUnknown,
} from '../index.ts';
import { FakeService } from '../testing/fake-service.ts';

let service: FakeService;
let client: TinkerClient;

const connect = () => TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', noProgressMs: 300 });
const training = (nextSeqId = 1) => client.training('m', { nextSeqId });

beforeEach(async () => {
  service = await FakeService.start();
  service.script('client/config', { json: { fwdbwd_max_chunk_len: 2 } });
  client = await connect();
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

function rows(firstToken: number) {
  const tokens = Int32Array.of(firstToken);
  return { modelInput: tokens, targetTokens: tokens, logprobs: new Float32Array(1), advantages: new Float32Array(1) };
}

/** As if it had been kept on disk. */
function kept<Saved extends SavedCall>(saved: Saved): Saved {
  const read = parseSavedCall(JSON.parse(JSON.stringify(saved)));
  expect(read).toEqual(saved);
  return read as Saved;
}

describe('a submitted call', () => {
  test('names what is needed to wait for it, and nothing has been waited for', async () => {
    const pending = await training(7).submitForwardBackward([rows(1), rows(2), rows(3)], 'ppo');
    const { requestIds, ...saved } = pending.saved;
    expect(saved).toEqual({ kind: 'forwardBackward', modelId: 'm', seqId: 7, targetCounts: [[1, 1], [1]] });
    expect(requestIds).toHaveLength(2);
    expect(service.to('retrieve_future')).toEqual([]);
  });

  test('is waited for in another process, with the chunks in order', async () => {
    const pending = await training().submitForwardBackward([rows(1), rows(2), rows(3)], 'ppo');
    const here = await pending.result();
    await using other = await connect();
    const there = await other.resume(kept(pending.saved)).result();
    expect(there).toEqual(here);
    expect(there.lossFnOutputs.map(({ logprobs }) => logprobs?.values[0])).toEqual([1, 2, 3]);
    expect(service.to('forward_backward')).toHaveLength(2);
  });

  test('of every kind brings what its plain call brings', async () => {
    const model = training();
    expect(await client.resume(kept((await model.submitOptimStep({ learningRate: 1e-3 })).saved)).result()).toEqual(
      await model.optimStep({ learningRate: 1e-3 }),
    );
    expect(await client.resume(kept((await model.submitSaveState('a')).saved)).result()).toBe('tinker://run/weights/a');
    expect(await client.resume(kept((await model.submitSaveForSampler('b')).saved)).result()).toBe('tinker://run/sampler_weights/b');
  });

  test('of an ephemeral save becomes a sampler', async () => {
    service.script('save_weights_for_sampler', { json: { request_id: 'a' } });
    const pending = await training().submitSaveAndSample();
    expect(service.to('save_weights_for_sampler')[0]?.json).toEqual({
      model_id: 'm',
      seq_id: 1,
      sampling_session_seq_id: 0,
      kind: 'snapshot',
      type: 'save_weights_for_sampler',
    });
    service.script('retrieve_future', { json: { sampling_session_id: 'sess:sample:0' } });
    const sampler = await pending.result();
    await sampler.sampleAll({ prompt: Int32Array.of(1) });
    expect(service.to('asample')[0]?.json).toMatchObject({ sampling_session_id: 'sess:sample:0', seq_id: 0 });
    service.script('asample', { status: 410 });
    await expect(sampler.sampleAll({ prompt: Int32Array.of(1) })).rejects.toThrow('save them again');
  });
});

test('a second sampler of one ephemeral save takes other numbers: the first one’s would bring its samples again', async () => {
  const ephemeral = { json: { sampling_session_id: 'sess:sample:0' } };
  service.script('save_weights_for_sampler', { json: { request_id: 'a' } });
  const pending = await training().submitSaveAndSample();
  service.script('retrieve_future', ephemeral);
  const first = await pending.result();
  service.script('retrieve_future', ephemeral, ephemeral);
  const others = [await pending.result(), await client.resume(kept(pending.saved)).result()];
  for (const sampler of [first, ...others]) await sampler.sampleAll({ prompt: Int32Array.of(1) });
  const clones = service.to('asample').map(({ json }) => Number(json.seq_id) / 1e9);
  expect(clones[0]).toBe(0);
  expect(clones.every(Number.isSafeInteger)).toBe(true);
  expect(new Set(clones).size).toBe(3);
});

describe('a wait that ends early', () => {
  test.each([
    ['an unpaid bill', { status: 402 }, BillingPaused],
    ['a refused key', { status: 401 }, CredentialRefused],
    ['an abort', 'hang', DOMException],
  ] as const)('%s: the same call is waited for again, later calls go on', async (_, reply, kind) => {
    const model = training();
    const pending = await model.submitOptimStep({ learningRate: 1e-3 });
    service.script('retrieve_future', reply);
    await expect(pending.result({ signal: AbortSignal.timeout(100) })).rejects.toThrow(kind);
    expect((await pending.result()).metrics).toEqual({ 'grad_norm:max': 0.5 });
    await model.saveState('a');
    expect(service.to('save_weights')[0]?.json.seq_id).toBe(2);
    expect(service.to('optim_step')).toHaveLength(1);
  });

  test('a lost result ends the model: no later call is made on it', async () => {
    const model = training();
    const pending = await model.submitOptimStep({ learningRate: 1e-3 });
    service.script('retrieve_future', { status: 410 });
    await expect(pending.result()).rejects.toThrow(TrainingStateUnknown);
    await expect(model.saveState('a')).rejects.toThrow(TrainingStateUnknown);
    expect(service.to('save_weights')).toEqual([]);
  });
});

test.each([
  [{ kind: 'dance', modelId: 'm', seqId: 1, requestIds: ['a'] }, 'kind'],
  [{ kind: 'optimStep', modelId: 'm', seqId: 1, requestIds: [] }, 'requestIds'],
  [{ kind: 'forwardBackward', modelId: 'm', seqId: 1, requestIds: ['a'] }, 'targetCounts'],
  [{ kind: 'forward', modelId: 'm', seqId: 1, requestIds: ['a', 'b'], targetCounts: [[1]] }, 'targetCounts'],
  [{ kind: 'optimStep', modelId: 'm', seqId: 1, requestIds: ['a', 'b'] }, 'requestIds'],
  [{ kind: 'saveAndSample', modelId: 'm', seqId: 1, requestIds: ['a'], samplingSessionSeqId: -1 }, 'samplingSessionSeqId'],
  ['text', 'the whole value'],
])('what is no saved call is refused by field: %j', (value, field) => {
  expect(() => parseSavedCall(value)).toThrow(BadRequest);
  expect(() => parseSavedCall(value)).toThrow(field);
});

test('a saved call of another model is refused', async () => {
  const { saved } = await training().submitOptimStep({ learningRate: 1 });
  expect(() => client.training('other', { nextSeqId: 2 }).resume(saved)).toThrow('the saved call is of model m, this is other');
});

test('unload frees the model, and later calls say so', async () => {
  service.script('unload_model', { json: { request_id: 'a', model_id: 'm' } });
  service.script('retrieve_future', { json: { model_id: 'm', type: 'unload_model' } });
  const model = training();
  await model.unload();
  expect(service.to('unload_model')[0]?.json).toEqual({ model_id: 'm', type: 'unload_model' });
  await expect(model.saveState('a')).rejects.toThrow('this client has unloaded the model');
});

test('an ephemeral save may be made again with its saved number', async () => {
  service.usually('retrieve_future', { json: { sampling_session_id: 'sess:sample:7' } });
  for (const model of [training(3), training(3)]) await model.saveAndSample({ samplingSessionSeqId: 7 });
  const bodies = service.to('save_weights_for_sampler').map(({ json }) => json);
  expect(bodies[0]).toMatchObject({ seq_id: 3, sampling_session_seq_id: 7 });
  expect(bodies[1]).toEqual(bodies[0]);
});

test('an ephemeral save of another session’s model takes a number that its first client has not used, and keeps it', async () => {
  service.usually('retrieve_future', { json: { sampling_session_id: 'other:sample:7' } });
  const model = client.training('m', { nextSeqId: 3, sessionId: 'other' });
  const pending = [await model.submitSaveAndSample(), await model.submitSaveAndSample()];
  const kepts = pending.map(({ saved }) => kept(saved).samplingSessionSeqId);
  const numbers = service.to('save_weights_for_sampler').map(({ json }) => json.sampling_session_seq_id);
  expect(numbers).toEqual(kepts);
  expect(numbers[0]).toBeGreaterThanOrEqual(1_000_000);
  expect(numbers[1]).not.toBe(numbers[0]);
  const own = await client.training('n', { nextSeqId: 1, sessionId: client.sessionId }).submitSaveAndSample();
  expect(kept(own.saved).samplingSessionSeqId).toBe(0);
});

test('a saved call that must be of one kind has that kind’s result', async () => {
  const pending = await training().submitForwardBackward([rows(1)], 'ppo');
  const saved: unknown = JSON.parse(JSON.stringify(pending.saved));
  const { metrics } = await client.resume(parseSavedCall(saved, 'forwardBackward')).result();
  expect(metrics).toEqual((await pending.result()).metrics);
  expect(() => parseSavedCall(saved, 'optimStep')).toThrow('no saved call of optimStep: kind: it is of forwardBackward');
  expect(() => parseSavedCall(saved, 'optimStep')).toThrow(BadRequest);
});
