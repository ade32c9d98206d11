import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UserError } from './failures.ts';
import type { Operation } from './run-journal.ts';
import type { ModelState, StartState, TrainingBackend } from './threads/training-backend.ts';
import { TrainingRun } from './training-run.ts';
import { TrainingRuns } from './training-runs.ts';

/** A model of one number: forward_backward adds its body's first byte to the gradient, a step adds the gradient times the rate. */
class CountingBackend implements TrainingBackend {
  readonly models = new Map<string, { value: number; steps: number; gradient: number }>();
  readonly calls: string[] = [];
  /** While set, forwardBackward does not come to an end. */
  hold: Promise<void> | null = null;

  async create(modelId: string): Promise<ModelState> {
    this.calls.push('create');
    this.models.set(modelId, { value: 0, steps: 0, gradient: 0 });
    return this.#state(modelId);
  }

  async restore(modelId: string, _base: string, state: StartState): Promise<ModelState> {
    const optimizer = 'optimizer' in state ? new Float64Array(state.optimizer.slice().buffer)[0] : 0;
    this.models.set(modelId, { value: new Float64Array(state.weights.slice().buffer)[0] ?? 0, steps: optimizer ?? 0, gradient: 0 });
    return this.#state(modelId);
  }

  async forwardBackward(modelId: string, body: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    await this.hold;
    const amount = body[0] ?? 0;
    if (amount === 255) throw new UserError('data[0]: is bad');
    this.calls.push(`gradient ${amount}`);
    this.#model(modelId).gradient += amount;
    return new Uint8Array([amount, 1]);
  }

  async optimStep(modelId: string, adam: { readonly learningRate: number }) {
    this.calls.push('step');
    const model = this.#model(modelId);
    const gradNorm = Math.abs(model.gradient);
    model.value += adam.learningRate * model.gradient;
    model.steps += 1;
    model.gradient = 0;
    return { gradNorm, step: model.steps, state: this.#state(modelId) };
  }

  async drop(modelId: string): Promise<void> {
    this.models.delete(modelId);
  }

  #model(modelId: string) {
    const model = this.models.get(modelId);
    if (model === undefined) throw new Error('not in the engine');
    return model;
  }

  #state(modelId: string): ModelState {
    const { value, steps } = this.#model(modelId);
    return { weights: new Uint8Array(Float64Array.of(value).buffer), optimizer: new Uint8Array(Float64Array.of(steps).buffer) };
  }
}

let folder: string;
let backend: CountingBackend;
let runs: TrainingRuns;
const samplers: string[] = [];
const open = (): TrainingRuns =>
  new TrainingRuns(folder, {
    backend,
    addSampler: (id) => samplers.push(id),
    now: () => new Date('2026-01-01T00:00:00Z'),
    onFatal: (reason) => {
      throw reason;
    },
  });
/** As after a kill: a new process, a new engine, the same folder. */
const restart = (): void => {
  backend = new CountingBackend();
  runs = open();
};

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'runs-'));
  restart();
});
afterEach(() => rmSync(folder, { recursive: true }));

const lora = { rank: 1, seed: 1, trainAttn: true, trainMlp: true };
const begin = (): TrainingRun =>
  runs.begin({ sessionId: 's', modelSeqId: 0, baseModel: 'base', lora, userMetadata: null }, { op: 'create' });
const gradient: Operation = { op: 'forward_backward', forwardOnly: false };
const step: Operation = {
  op: 'optim_step',
  adam: { learningRate: 0.5, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, gradClipNorm: 0 },
};
const save = (name: string): Operation => ({ op: 'save_weights', name, overwrite: false, ttlSeconds: null, userMetadata: null });
const saveSampler = (name: string): Operation => ({
  op: 'save_weights_for_sampler',
  name,
  samplerId: null,
  ttlSeconds: null,
  userMetadata: null,
});
const done = async (run: TrainingRun, seq: number) => {
  await run.wait(seq, 2000);
  return run.future(seq);
};
const valueIn = (run: TrainingRun, name: string): number | undefined =>
  new Float64Array(run.readCheckpoint('weights', name).weights.slice().buffer)[0];

describe('a model in training', () => {
  it('carries calls out in the order of their numbers and waits for a missing one', async () => {
    const run = begin();
    run.submit(3, step);
    run.submit(2, gradient, new Uint8Array([4]));
    await done(run, 0);
    expect(run.future(3)).toEqual({ kind: 'pending' });
    expect(backend.calls).toEqual(['create']);
    run.submit(1, gradient, new Uint8Array([2]));
    expect(await done(run, 3)).toMatchObject({ kind: 'json', value: { metrics: { 'grad_norm:mean': 6 } } });
    expect(backend.calls).toEqual(['create', 'gradient 2', 'gradient 4', 'step']);
  });

  it('carries a repeated number out once, before and after it is done', async () => {
    const run = begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(1, gradient, new Uint8Array([2]));
    await done(run, 1);
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    await done(run, 2);
    restart();
    const again = runs.get('s:train:0');
    again.submit(1, gradient, new Uint8Array([2]));
    again.submit(2, step);
    again.submit(3, save('a'));
    await done(again, 3);
    expect(valueIn(again, 'a')).toBe(1);
    expect(backend.calls).toEqual([]);
  });

  it('fails a bad call without holding up the next, and without its gradient', async () => {
    const run = begin();
    run.submit(1, gradient, new Uint8Array([3]));
    run.submit(2, gradient, new Uint8Array([255]));
    run.submit(3, { op: 'refused', error: 'adam_params.beta1: is bad' });
    run.submit(4, step);
    expect(await done(run, 2)).toEqual({ kind: 'failed', error: 'data[0]: is bad', category: 'user' });
    expect(await done(run, 3)).toMatchObject({ kind: 'failed', error: 'adam_params.beta1: is bad' });
    expect(await done(run, 4)).toMatchObject({ value: { metrics: { 'grad_norm:mean': 3 } } });
  });

  it('refuses a step whose gradient is not finite and goes on without that gradient', async () => {
    const run = begin();
    run.submit(1, gradient, new Uint8Array([3]));
    await done(run, 1);
    const model = backend.models.get('s:train:0');
    if (model !== undefined) model.gradient = Number.NaN;
    run.submit(2, step);
    expect(await done(run, 2)).toMatchObject({ kind: 'failed', category: 'user' });
    run.submit(3, gradient, new Uint8Array([2]));
    run.submit(4, step);
    run.submit(5, save('a'));
    await done(run, 5);
    expect(valueIn(run, 'a')).toBe(1);
  });

  it('gathers gradients again after a restart, also for a call that was under way', async () => {
    const run = begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    run.submit(3, gradient, new Uint8Array([4]));
    await done(run, 3);
    backend.hold = new Promise(() => {});
    run.submit(4, gradient, new Uint8Array([6]));
    run.submit(5, step);
    restart();
    const again = runs.get('s:train:0');
    expect(again.future(3)).toEqual({ kind: 'proto', bytes: new Uint8Array([4, 1]) });
    again.submit(6, save('a'));
    await done(again, 6);
    expect(backend.calls).toEqual(['gradient 4', 'gradient 6', 'step']);
    expect(valueIn(again, 'a')).toBe(1 + 5);
  });

  it('comes to the same after a journal torn at any byte, when the client repeats its calls', async () => {
    const calls = (run: TrainingRun): void => {
      run.submit(1, gradient, new Uint8Array([2]));
      run.submit(2, step);
      run.submit(3, gradient, new Uint8Array([4]));
      run.submit(4, step);
      run.submit(5, save('a'));
    };
    calls(begin());
    await done(runs.get('s:train:0'), 5);
    const path = join(folder, 's.train.0', 'journal.log');
    const size = statSync(path).size;
    const bytes = readFileSync(path);
    for (let cut = 0; cut <= size; cut += 37) {
      writeFileSync(path, bytes.subarray(0, cut));
      restart();
      const run = begin();
      calls(run);
      await done(run, 5);
      expect(valueIn(run, 'a')).toBe(3);
    }
  });

  it('keeps a bounded journal and forgets only old results', async () => {
    const run = begin();
    const path = join(folder, 's.train.0', 'journal.log');
    let largest = 0;
    for (let seq = 1; seq <= 1100; seq += 1) {
      run.submit(seq, seq % 2 === 1 ? gradient : step, seq % 2 === 1 ? new Uint8Array(60_000).fill(2) : undefined);
      if (seq % 50 === 0) await done(run, seq);
      largest = Math.max(largest, statSync(path).size);
    }
    expect(largest).toBeLessThan(26 * 1024 * 1024);
    await run.unload();
    expect(statSync(path).size).toBeLessThan(1_000_000);
    expect(run.future(5)).toEqual({ kind: 'gone' });
    expect(run.future(1099)).toMatchObject({ kind: 'proto' });
    restart();
    const again = runs.get('s:train:0');
    again.submit(1101, save('a'));
    await done(again, 1101);
    expect(valueIn(again, 'a')).toBe(550);
  });

  it('ignores a folder whose journal was torn before the model was written down', () => {
    begin();
    restart();
    const path = join(folder, 'other');
    TrainingRun.recover(path, { backend, addSampler: () => {}, now: () => new Date(), onFatal: () => {}, readCheckpoint: unreachable });
    appendFileSync(join(path, 'journal.log'), 'torn');
    restart();
    expect(runs.all().map((run) => run.model.modelId)).toEqual(['s:train:0']);
  });
});

const unreachable = (): never => {
  throw new Error('not called');
};

describe('checkpoints', () => {
  it('are not changed by later steps and start other models, with or without the optimizer state', async () => {
    const run = begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    run.submit(3, save('a'));
    run.submit(4, gradient, new Uint8Array([8]));
    run.submit(5, step);
    await done(run, 5);
    expect(valueIn(run, 'a')).toBe(1);
    const path = 'tinker://s:train:0/weights/a';
    const model = { sessionId: 's', baseModel: null, lora: null, userMetadata: null };
    const full = runs.begin({ ...model, modelSeqId: 1 }, { op: 'create_from', path, optimizer: true });
    expect(await done(full, 0)).toMatchObject({ kind: 'json', value: { model_id: 's:train:1' } });
    expect(backend.models.get('s:train:1')).toMatchObject({ value: 1, steps: 1 });
    expect(full.model).toMatchObject({ baseModel: 'base', lora });
    const bare = runs.begin({ ...model, modelSeqId: 2 }, { op: 'create_from', path, optimizer: false });
    await done(bare, 0);
    expect(backend.models.get('s:train:2')).toMatchObject({ value: 1, steps: 0 });
  });

  it('are refused under a taken name unless told to overwrite; a sampler path never changes its weights', async () => {
    const run = begin();
    run.submit(1, save('a'));
    run.submit(2, saveSampler('a'));
    run.submit(3, save('a'));
    run.submit(4, saveSampler('a'));
    run.submit(5, gradient, new Uint8Array([2]));
    run.submit(6, step);
    run.submit(7, { ...save('a'), overwrite: true } as Operation);
    run.submit(8, saveSampler('a'));
    expect(await done(run, 3)).toMatchObject({ kind: 'failed', category: 'user' });
    expect(await done(run, 4)).toMatchObject({ kind: 'json', value: { path: 'tinker://s:train:0/sampler_weights/a' } });
    expect(await done(run, 7)).toMatchObject({ kind: 'json' });
    expect(await done(run, 8)).toMatchObject({ kind: 'failed', category: 'user' });
    expect(valueIn(run, 'a')).toBe(1);
  });

  it('fail a load of a path that is not there, and the model stays as it was', async () => {
    const run = begin();
    run.submit(1, { op: 'load_weights', path: 'tinker://s:train:9/weights/a', optimizer: false });
    run.submit(2, save('a'));
    expect(await done(run, 1)).toMatchObject({ kind: 'failed', error: expect.stringContaining('no such checkpoint') });
    await done(run, 2);
    expect(valueIn(run, 'a')).toBe(0);
  });

  it('go when they are removed or their time is over, also after a restart', async () => {
    const run = begin();
    run.submit(1, save('a'));
    run.submit(2, save('b'));
    await done(run, 2);
    run.removeCheckpoint('weights', 'a');
    run.setExpiry('weights', 'b', '2025-12-31T00:00:00Z');
    restart();
    expect(runs.get('s:train:0').checkpoints).toEqual([]);
    expect(readdirSync(join(folder, 's.train.0', 'weights'))).toEqual([]);
  });
});
