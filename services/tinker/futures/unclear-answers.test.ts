import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { statePath, TinkerClient, TinkerError, type TrainingClient } from '../index.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { FakeService } from '../testing/fake-service.ts';

/** Answers that are none of those which the protocol defines, against the calls whose results may be all but empty. */

const STATE = statePath('tinker://run/weights/one');

let service: FakeService;
let client: TinkerClient;

beforeEach(async () => {
  service = await FakeService.start();
  client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', clock: new FakeClock(), stalledMs: 5000 });
  service.usually('unload_model', { json: { request_id: 'req-0' } });
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

const CALLS: readonly [name: string, failsAs: string, run: (client: TinkerClient, model: TrainingClient) => Promise<unknown>][] = [
  ['optim_step', 'TrainingStateUnknown', (_, model) => model.optimStep({ learningRate: 1e-3 })],
  ['load_weights', 'ServiceFailed', (_, model) => model.loadState(STATE, { optimizer: true })],
  ['a model from saved state', 'ServiceFailed', (client) => client.createModelFromState(STATE, { optimizer: true })],
  ['create_model', 'ServiceFailed', (client) => client.createModel({ baseModel: 'm', rank: 4 })],
  ['unload_model', 'ServiceFailed', (_, model) => model.unload()],
  ['a save', 'ServiceFailed', (_, model) => model.saveState('one')],
];

const UNCLEAR: readonly string[] = [
  '{"error": "out of memory", "category": null}',
  '{"error": "out of memory", "category": 7, "metrics": {}, "model_id": "m", "path": "tinker://run/weights/one"}',
  '{"error": {"code": "oom"}, "category": "server"}',
  '{"error": ""}',
  '{"status": "complete_metadata", "response_payload_size": null}',
  '{"status": "complete_metadata", "response_payload_size": -1, "metrics": {}}',
  '{"detail": "oops"}',
  '{"type": "error", "message": "oops"}',
  '[]',
  'null',
  '"ok"',
  '',
  '<html>',
];

describe.each(CALLS)('%s', (_, failsAs, run) => {
  const failureOf = async () => {
    const error = await run(client, client.training('m', { nextSeqId: 1 })).then(
      () => 'a success',
      (error: unknown) => error,
    );
    return error instanceof TinkerError ? error : expect.fail(`no error but ${error}`);
  };

  test.each(UNCLEAR)('%s is no success', async (text) => {
    service.usually('retrieve_future', { text });
    expect(await failureOf()).toMatchObject({ name: failsAs, requestId: 'req-0' });
  });

  test('pending with an odd queue state is pending', async () => {
    service.usually('retrieve_future', { json: { type: 'try_again', queue_state: 5, metrics: {}, model_id: 'm' } });
    expect(await failureOf()).toMatchObject({ name: 'RetryLater', queueState: 'unknown', requestId: 'req-0' });
  });

  test('a fault of the caller stays one', async () => {
    service.usually('retrieve_future', { json: { error: 'no', category: 'user' } });
    expect(await failureOf()).toMatchObject({ name: 'BadRequest', detail: 'no' });
  });
});

test.each([
  [{ metrics: { 'loss:sum': null, 'step:max': 3 } }, { 'loss:sum': Number.NaN, 'step:max': 3 }],
  [{ metrics: null }, {}],
  [{ type: 'optim_step' }, {}],
  [{}, {}],
  [{ metrics: { 'step:max': 3 }, error: null }, { 'step:max': 3 }],
])('%j is a step', async (json, metrics) => {
  service.script('retrieve_future', { json });
  expect(await client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 })).toEqual({ metrics });
});

test('NaN among the metrics of a step is no reason to doubt it', async () => {
  service.script('retrieve_future', { text: '{"metrics": {"loss:sum": NaN, "norm:max": Infinity}}' });
  const { metrics } = await client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
  expect(metrics).toEqual({ 'loss:sum': Number.NaN, 'norm:max': Number.POSITIVE_INFINITY });
});

test.each([{ type: 'load_weights' }, { path: 'sessions/m/checkpoints/one', metrics: {} }, { model_id: 'm' }])(
  '%j is a load',
  async (json) => {
    service.script('retrieve_future', { json });
    await client.training('m', { nextSeqId: 1 }).loadState(STATE, { optimizer: true });
  },
);

test.each([{ error: 'boom', model_id: 'm' }, { detail: 'oops' }])('an unload that is answered at once with %j was none', async (json) => {
  service.script('unload_model', { json });
  await expect(client.training('m', { nextSeqId: 1 }).unload()).rejects.toMatchObject({ name: 'ServiceFailed', call: 'unload_model' });
});

test.each([{ model_id: 'm' }, {}])('an unload may be answered at once: %j', async (json) => {
  service.script('unload_model', { json });
  await client.training('m', { nextSeqId: 1 }).unload();
});

test('a step whose submission is answered with something odd may have been taken', async () => {
  service.script('optim_step', { json: { detail: 'oops' } });
  const step = client.training('m', { nextSeqId: 1 }).optimStep({ learningRate: 1e-3 });
  await expect(step).rejects.toMatchObject({ name: 'TrainingStateUnknown', call: 'optim_step' });
});

test('a service that only ever tells the size of a result has failed', async () => {
  service.usually('retrieve_future', { json: { status: 'complete_metadata', response_payload_size: 10 } });
  const sampler = await client.sampler({ baseModel: 'm' });
  const sample = sampler.sample({ prompt: Int32Array.of(36), maxTokens: 1, temperature: 1, stopTokens: [] });
  await expect(sample).rejects.toMatchObject({ name: 'ServiceFailed', requestId: 'req-0' });
  expect(service.to('retrieve_future').map(({ json }) => json.allow_metadata_only)).toEqual([true, false]);
});
