import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Journal } from './journal.ts';
import { done, gradient, RunsFixture, save, step, valueIn } from './testing/runs-fixture.ts';
import { TrainingRun } from './training-run.ts';

let fixture: RunsFixture;
beforeEach(() => {
  fixture = new RunsFixture();
});
afterEach(() => fixture.remove());

describe('a model in training', () => {
  it('carries calls out in the order of their numbers and waits for a missing one', async () => {
    const run = fixture.begin();
    run.submit(3, step);
    run.submit(2, gradient, new Uint8Array([4]));
    await done(run, 0);
    expect(run.future(3)).toEqual({ kind: 'pending' });
    expect(fixture.backend.calls).toEqual(['create']);
    run.submit(1, gradient, new Uint8Array([2]));
    expect(await done(run, 3)).toMatchObject({ kind: 'json', value: { metrics: { 'grad_norm:mean': 6 } } });
    expect(fixture.backend.calls).toEqual(['create', 'gradient 2', 'gradient 4', 'step']);
  });

  it('carries a repeated number out once, before and after it is done', async () => {
    const run = fixture.begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(1, gradient, new Uint8Array([2]));
    await done(run, 1);
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    await done(run, 2);
    fixture.restart();
    const again = fixture.runs.get('s:train:0');
    again.submit(1, gradient, new Uint8Array([2]));
    again.submit(2, step);
    again.submit(3, save('a'));
    await done(again, 3);
    expect(valueIn(again, 'a')).toBe(1);
    expect(fixture.backend.calls).toEqual([]);
  });

  it('refuses another call under a used number, whether that one waits, is done or is known from a journal only', async () => {
    const run = fixture.begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(3, save('a'));
    const attempts = (to: TrainingRun): void => {
      expect(() => to.submit(1, gradient, new Uint8Array([3]))).toThrow('conflict: s:train:0:1 was another forward_backward call');
      expect(() => to.submit(1, step)).toThrow('conflict: s:train:0:1 was a forward_backward call');
      expect(() => to.submit(3, save('b'))).toThrow('conflict');
      expect(() => to.submit(0, step)).toThrow('conflict: s:train:0:create was a create call');
      to.submit(1, gradient, new Uint8Array([2]));
      to.submit(3, save('a'));
    };
    attempts(run);
    run.submit(2, step);
    await done(run, 3);
    attempts(run);
    await run.unload();
    attempts(run);
    fixture.restart();
    attempts(fixture.runs.get('s:train:0'));
    expect(valueIn(fixture.runs.get('s:train:0'), 'a')).toBe(1);
  });

  it('takes up a journal that does not say what its calls were, and believes its repeats', async () => {
    const run = fixture.begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    await done(run, 2);
    const path = join(fixture.folder, 's.train.0', 'journal.log');
    const records: { header: unknown; payload: Uint8Array }[] = [];
    const journal = Journal.open(path, ({ header, payload }) => {
      const { call: _, ...old } = header as Record<string, unknown>;
      records.push({ header: old, payload: readFileSync(path).subarray(payload.offset, payload.offset + payload.length) });
    });
    journal.rewrite(records, () => {});
    journal.close();
    fixture.restart();
    const again = fixture.runs.get('s:train:0');
    again.submit(2, save('other'));
    expect(again.future(2)).toMatchObject({ kind: 'json', value: { type: 'optim_step' } });
    again.submit(3, save('a'));
    await done(again, 3);
    expect(valueIn(again, 'a')).toBe(1);
  });

  it('fails a bad call without holding up the next, and without its gradient', async () => {
    const run = fixture.begin();
    run.submit(1, gradient, new Uint8Array([3]));
    run.submit(2, gradient, new Uint8Array([255]));
    run.submit(3, { op: 'refused', error: 'adam_params.beta1: is bad' });
    run.submit(4, step);
    expect(await done(run, 2)).toEqual({ kind: 'failed', error: 'data[0]: is bad', category: 'user' });
    expect(await done(run, 3)).toMatchObject({ kind: 'failed', error: 'adam_params.beta1: is bad' });
    expect(await done(run, 4)).toMatchObject({ value: { metrics: { 'grad_norm:mean': 3 } } });
  });

  it('refuses a step whose gradient is not finite and goes on without that gradient', async () => {
    const run = fixture.begin();
    run.submit(1, gradient, new Uint8Array([3]));
    await done(run, 1);
    const model = fixture.backend.models.get('s:train:0');
    if (model !== undefined) model.gradient = Number.NaN;
    run.submit(2, step);
    expect(await done(run, 2)).toMatchObject({ kind: 'failed', category: 'user' });
    run.submit(3, gradient, new Uint8Array([2]));
    run.submit(4, step);
    run.submit(5, save('a'));
    await done(run, 5);
    expect(valueIn(run, 'a')).toBe(1);
  });

  it('comes to the same after a journal torn at any byte, when the client repeats its calls', async () => {
    const calls = (run: TrainingRun): void => {
      run.submit(1, gradient, new Uint8Array([2]));
      run.submit(2, step);
      run.submit(3, gradient, new Uint8Array([4]));
      run.submit(4, step);
      run.submit(5, save('a'));
    };
    calls(fixture.begin());
    await done(fixture.runs.get('s:train:0'), 5);
    const path = join(fixture.folder, 's.train.0', 'journal.log');
    const size = statSync(path).size;
    const bytes = readFileSync(path);
    for (let cut = 0; cut <= size; cut += 37) {
      writeFileSync(path, bytes.subarray(0, cut));
      fixture.restart();
      const run = fixture.begin();
      calls(run);
      await done(run, 5);
      expect(valueIn(run, 'a')).toBe(3);
    }
  });

  it('keeps a bounded journal and forgets only old results that were fetched', async () => {
    const run = fixture.begin();
    const path = join(fixture.folder, 's.train.0', 'journal.log');
    let largest = 0;
    for (let seq = 1; seq <= 1100; seq += 1) {
      run.submit(seq, seq % 2 === 1 ? gradient : step, seq % 2 === 1 ? new Uint8Array(60_000).fill(2) : undefined);
      if (seq % 50 === 0) await done(run, seq);
      if (seq % 50 === 0) for (let known = seq - 49; known <= seq; known += 1) if (known !== 7) run.fetch(known);
      largest = Math.max(largest, statSync(path).size);
    }
    expect(largest).toBeLessThan(26 * 1024 * 1024);
    expect([5, 7, 99, 102].map((seq) => run.future(seq).kind)).toEqual(['gone', 'proto', 'gone', 'json']);
    await run.unload();
    expect(statSync(path).size).toBeLessThan(1_000_000);
    expect([7, 1000, 1099].map((seq) => run.future(seq).kind)).toEqual(['proto', 'gone', 'proto']);
    fixture.restart();
    const again = fixture.runs.get('s:train:0');
    again.submit(1101, save('a'));
    await done(again, 1101);
    expect(valueIn(again, 'a')).toBe(550);
  });

  it('keeps results until they were fetched, also over an unload, but not when its client is gone', async () => {
    const run = fixture.begin();
    const results = () => Array.from({ length: 1100 }, (_, i) => run.future(i + 1).kind);
    for (let seq = 1100; seq >= 1; seq -= 1) run.submit(seq, { op: 'refused', error: `number ${seq}` });
    await done(run, 1100);
    expect(new Set(results())).toEqual(new Set(['failed']));
    // One that is fetched late stays for a repeat of the poll.
    expect(run.fetch(1)).toMatchObject({ error: 'number 1' });
    expect(run.fetch(1)).toMatchObject({ error: 'number 1' });
    await run.unload();
    expect(
      results()
        .map((kind, i) => (kind === 'gone' ? i + 1 : null))
        .filter((seq) => seq !== null),
    ).toEqual([1]);
    await run.unload(true);
    expect(results().filter((kind) => kind !== 'gone')).toHaveLength(16);
  });

  it('is unloaded only behind the calls whose turn has come, and comes back by itself', async () => {
    const run = fixture.begin();
    await done(run, 0);
    const held = Promise.withResolvers<void>();
    fixture.backend.hold = held.promise;
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    const unloaded = run.unload();
    expect([run.isUnloading, run.future(1)]).toEqual([true, { kind: 'pending' }]);
    held.resolve();
    await unloaded;
    expect([run.isUnloading, run.future(2).kind, fixture.backend.models.size]).toEqual([false, 'json', 0]);
    await run.unload();
    run.submit(3, gradient, new Uint8Array([4]));
    run.submit(4, step);
    run.submit(5, save('a'));
    await done(run, 5);
    expect(valueIn(run, 'a')).toBe(3);
  });

  it('ignores a folder whose journal was torn before the model was written down', () => {
    fixture.begin();
    fixture.restart();
    const path = join(fixture.folder, 'other');
    TrainingRun.recover(path, {
      backend: fixture.backend,
      addSampler: () => {},
      now: () => new Date(),
      onFatal: () => {},
      readCheckpoint: unreachable,
    });
    appendFileSync(join(path, 'journal.log'), 'torn');
    fixture.restart();
    expect(fixture.runs.all().map((run) => run.model.modelId)).toEqual(['s:train:0']);
  });
});

const unreachable = (): never => {
  throw new Error('not called');
};
