import { describe, expect, test } from 'vitest';
import type { SamplerPath as CoreSamplerPath, StatePath as CoreStatePath } from '../../core/ids.ts';
import { BadRequest, pathParts, type SamplerPath, type StatePath, samplerPath, statePath, TinkerClient } from './index.ts';
import { FakeService } from './testing/fake-service.ts';

const STATE = 'tinker://s:train:0/weights/step-1';
const SAMPLER = 'tinker://s:train:0/sampler_weights/step-1';
const TWO_PARTS = 'tinker://model_1/step-1';

describe('parsing', () => {
  test('what each kind is', () => {
    expect(statePath(STATE)).toBe(STATE);
    expect(samplerPath(SAMPLER)).toBe(SAMPLER);
    expect(samplerPath(TWO_PARTS)).toBe(TWO_PARTS);
    expect(pathParts(STATE)).toEqual({ run: 's:train:0', kind: 'weights', name: 'step-1' });
  });

  test.each([
    [SAMPLER, 'weights for sampling'],
    [TWO_PARTS, 'weights for sampling'],
    ['tinker://r/external_weights/e', 'weights for download'],
    ['tinker://r/weights/a/b', 'no path of saved weights'],
    ['tinker://r/weights/', 'no path of saved weights'],
    ['/tmp/weights', 'no path of saved weights'],
    [`${STATE}?x=1`, 'no path of saved weights'],
  ])('%s is no training state: %s', (text, is) => {
    expect(() => statePath(text)).toThrow(BadRequest);
    expect(() => statePath(text)).toThrow(`is ${is}; needed is training state: tinker://<run>/weights/<name>`);
  });

  test.each([
    [STATE, 'training state'],
    ['tinker://r', 'no path of saved weights'],
    ['tinker://r/checkpoints/a', 'no path of saved weights'],
  ])('%s cannot be sampled from: %s', (text, is) => {
    expect(() => samplerPath(text)).toThrow(`is ${is}; needed is weights for sampling: tinker://<run>/sampler_weights/<name>`);
  });
});

/** Whether each can be given for the other. */
type Same<A, B> = [A, B] extends [B, A] ? true : false;

test('paths are the same types as those of the whole', () => {
  const state: Same<StatePath, CoreStatePath> = true;
  const sampler: Same<SamplerPath, CoreSamplerPath> = true;
  const mixed: Same<StatePath, CoreSamplerPath> = false;
  expect([state, sampler, mixed]).toEqual([true, true, false]);
});

describe('a path of the other kind', () => {
  test('does not compile', () => {
    const load = (_: StatePath) => {};
    const sample = (_: SamplerPath) => {};
    // @ts-expect-error a sampler path is no state
    load(samplerPath(SAMPLER));
    // @ts-expect-error a state is no sampler path
    sample(statePath(STATE));
    // @ts-expect-error text is neither before it is parsed
    load(STATE);
    expect(load.length + sample.length).toBe(2);
  });

  test('is refused before anything is sent, even where the compiler was talked out of it', async () => {
    await using service = await FakeService.start();
    await using client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
    const state = SAMPLER as unknown as StatePath;
    const sampler = STATE as unknown as SamplerPath;
    const training = client.training('m', { nextSeqId: 1 });
    await expect(training.loadState(state, { optimizer: true })).rejects.toThrow(
      `loadState: "${SAMPLER}" is weights for sampling; needed is training state`,
    );
    await expect(client.createModelFromState(state, { optimizer: false })).rejects.toThrow(BadRequest);
    await expect(client.sampler({ samplerPath: sampler })).rejects.toThrow('is training state; needed is weights for sampling');
    expect([service.to('load_weights'), service.to('create_sampling_session')]).toEqual([[], []]);
    // The call took no number: the next one leaves no gap.
    await training.saveState('a');
    expect(service.to('save_weights')[0]?.json.seq_id).toBe(1);
  });

  test('a form that only the server knows is used as it was answered', async () => {
    await using service = await FakeService.start();
    await using client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
    service.script('save_weights', { json: { request_id: 'a' } });
    service.script('retrieve_future', { json: { path: 'tinker://m/checkpoints/a' } });
    const training = client.training('m', { nextSeqId: 1 });
    const state = await training.saveState('a');
    await training.loadState(state, { optimizer: true });
    expect(service.to('load_weights')[0]?.json.path).toBe('tinker://m/checkpoints/a');
  });
});
