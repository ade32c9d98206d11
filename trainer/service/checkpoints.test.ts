import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Journal } from './journal.ts';
import type { Operation } from './run-journal.ts';
import { done, gradient, RunsFixture, save, saveSampler, step, valueIn } from './testing/runs-fixture.ts';

let fixture: RunsFixture;
beforeEach(() => {
  fixture = new RunsFixture();
});
afterEach(() => fixture.remove());

describe('checkpoints', () => {
  it('are not changed by later steps and start other models, with or without the optimizer state', async () => {
    const run = fixture.begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    run.submit(3, save('a'));
    run.submit(4, gradient, new Uint8Array([8]));
    run.submit(5, step);
    await done(run, 5);
    expect(valueIn(run, 'a')).toBe(1);
    const path = 'tinker://s:train:0/weights/a';
    const model = { sessionId: 's', baseModel: null, lora: null, userMetadata: null };
    const full = fixture.runs.begin({ ...model, modelSeqId: 1 }, { op: 'create_from', path, optimizer: true });
    expect(await done(full, 0)).toMatchObject({ kind: 'json', value: { model_id: 's:train:1' } });
    expect(fixture.backend.models.get('s:train:1')).toMatchObject({ value: 1, steps: 1 });
    expect(full.model).toMatchObject({ baseModel: 'base', lora: run.model.lora });
    const bare = fixture.runs.begin({ ...model, modelSeqId: 2 }, { op: 'create_from', path, optimizer: false });
    await done(bare, 0);
    expect(fixture.backend.models.get('s:train:2')).toMatchObject({ value: 1, steps: 0 });
  });

  it('are refused under a taken name unless told to overwrite; a sampler path never changes its weights', async () => {
    const run = fixture.begin();
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
    const run = fixture.begin();
    run.submit(1, { op: 'load_weights', path: 'tinker://s:train:9/weights/a', optimizer: false });
    run.submit(2, save('a'));
    expect(await done(run, 1)).toMatchObject({ kind: 'failed', error: expect.stringContaining('no checkpoint') });
    await done(run, 2);
    expect(valueIn(run, 'a')).toBe(0);
  });

  it('go the moment their time is over, say so, and leave their files to the next sweep', async () => {
    const run = fixture.begin();
    run.submit(1, { ...save('a'), ttlSeconds: 3600 } as Operation);
    run.submit(2, { ...saveSampler('b'), ttlSeconds: 7200 } as Operation);
    run.submit(3, save('kept'));
    await done(run, 3);
    const names = () => run.checkpoints.named().map(({ name }) => name);
    const paths = ['weights/a', 'sampler_weights/b'].map((end) => `tinker://s:train:0/${end}`) as [string, string];
    fixture.now = '2026-01-01T00:59:59Z';
    expect(names()).toEqual(['a', 'b', 'kept']);
    fixture.now = '2026-01-01T01:00:00Z';
    expect(names()).toEqual(['b', 'kept']);
    expect(() => fixture.runs.ownerOf(paths[0], 'path')).toThrow(
      "path: checkpoint 'tinker://s:train:0/weights/a' expired at 2026-01-01T01:00:00.000Z",
    );
    expect(() => run.checkpoints.setTtl('weights', 'a', 3600)).toThrow('expired');
    expect(fixture.runs.ownerOf(paths[1], 'path')).toMatchObject({ baseModel: 'base' });
    run.checkpoints.setTtl('sampler_weights', 'b', null);
    fixture.now = '2026-01-07T00:00:00Z';
    run.checkpoints.removeExpired();
    expect(names()).toEqual(['b', 'kept']);
    expect(readdirSync(join(fixture.folder, 's.train.0', 'weights')).some((file) => file.startsWith('a@'))).toBe(false);
    // Still known as expired when the sweep has been, after a restart and after the journal was rewritten.
    await run.unload();
    fixture.restart();
    expect(() => fixture.runs.readCheckpoint(paths[0])).toThrow('expired at 2026-01-01T01:00:00.000Z');
    // The name is free again.
    const again = fixture.runs.get('s:train:0');
    again.submit(4, save('a'));
    expect(await done(again, 4)).toMatchObject({ kind: 'json' });
    expect(fixture.runs.ownerOf(paths[0], 'path')).toMatchObject({ baseModel: 'base' });
  });

  it('are remembered as expired for a week, not for ever', async () => {
    const run = fixture.begin();
    for (let seq = 1; seq <= 20; seq += 1) run.submit(seq, { ...saveSampler(`s${seq}`), ttlSeconds: 3600 } as Operation);
    await done(run, 20);
    const said = () => run.checkpoints.missing('sampler_weights', 's20');
    fixture.now = '2026-01-08T00:59:59Z';
    run.checkpoints.removeExpired();
    expect(said()).toContain('expired');
    fixture.now = '2026-01-08T01:00:01Z';
    run.checkpoints.removeExpired();
    expect(said()).toBe("no checkpoint 'tinker://s:train:0/sampler_weights/s20'");
    await run.unload();
    expect(readFileSync(join(fixture.folder, 's.train.0', 'journal.log'), 'utf8')).not.toContain('checkpoint_removed');
  });

  it('go when they are removed or their time is over, also after a restart', async () => {
    const run = fixture.begin();
    run.submit(1, save('a'));
    run.submit(2, save('b'));
    await done(run, 2);
    run.checkpoints.remove('weights', 'a');
    run.checkpoints.setTtl('weights', 'b', 3600);
    fixture.now = '2026-01-01T02:00:00Z';
    fixture.restart();
    expect(fixture.runs.get('s:train:0').checkpoints.named()).toEqual([]);
    expect(readdirSync(join(fixture.folder, 's.train.0', 'weights'))).toEqual([]);
  });

  it('are overwritten weights and optimizer state together: until the new pair is known, the old one is read, also after a kill', async () => {
    const run = fixture.begin();
    const folder = join(fixture.folder, 's.train.0', 'weights');
    run.submit(1, save('a'));
    run.submit(2, gradient, new Uint8Array([2]));
    run.submit(3, step);
    await done(run, 3);
    // As a kill leaves it that comes while the overwriting save writes its files.
    writeFileSync(join(folder, 'a@4.optimizer.safetensors'), 'new');
    writeFileSync(join(folder, 'a@4.safetensors.tmp'), 'half');
    expect(run.checkpoints.read('weights', 'a')).toMatchObject({ weights: numberBytes(0), optimizer: numberBytes(0) });
    fixture.restart();
    expect(readdirSync(folder).sort()).toEqual(['a@1.optimizer.safetensors', 'a@1.safetensors']);
    const again = fixture.runs.get('s:train:0');
    again.submit(4, { ...save('a'), overwrite: true } as Operation);
    await done(again, 4);
    expect(again.checkpoints.read('weights', 'a')).toMatchObject({ weights: numberBytes(1), optimizer: numberBytes(1) });
    expect(readdirSync(folder).sort()).toEqual(['a@4.optimizer.safetensors', 'a@4.safetensors']);
  });

  it.each([
    ['weights', 'a@1.safetensors', 'is damaged', (bytes: Buffer) => flipped(bytes)],
    ['weights', 'a@1.optimizer.safetensors', 'is damaged', (bytes: Buffer) => flipped(bytes)],
    ['weights', 'a@1.safetensors', 'is damaged', (bytes: Buffer) => bytes.subarray(0, 4)],
    ['weights', 'a@1.optimizer.safetensors', 'cannot be read', () => null],
  ])('are not read from a damaged file, which is named: %s/%s %s', async (kind, file, said, damage) => {
    const run = fixture.begin();
    run.submit(1, save('a'));
    await done(run, 1);
    const path = join(fixture.folder, 's.train.0', kind, file);
    const damaged = damage(readFileSync(path));
    if (damaged === null) rmSync(path);
    else writeFileSync(path, damaged);
    fixture.restart();
    const again = fixture.runs.get('s:train:0');
    again.submit(2, { op: 'load_weights', path: 'tinker://s:train:0/weights/a', optimizer: true });
    again.submit(3, save('b'));
    expect(await done(again, 2)).toEqual({ kind: 'failed', category: 'server', error: expect.stringContaining(path) });
    expect(await done(again, 2)).toMatchObject({ error: expect.stringContaining(said) });
    await done(again, 3);
    expect(valueIn(again, 'b')).toBe(0);
  });

  it('are read unchecked when their record says nothing of the file', async () => {
    const run = fixture.begin();
    run.submit(1, save('a'));
    await done(run, 1);
    rewriteHeaders(({ optimizerSha256: _, ...old }) => old);
    const path = join(fixture.folder, 's.train.0', 'weights', 'a@1.optimizer.safetensors');
    writeFileSync(path, flipped(readFileSync(path)));
    fixture.restart();
    expect(fixture.runs.get('s:train:0').checkpoints.read('weights', 'a').optimizer).toEqual(new Uint8Array(readFileSync(path)));
  });

  it('are found under their plain names when their record names no others', async () => {
    const run = fixture.begin();
    run.submit(1, save('a'));
    await done(run, 1);
    const folder = join(fixture.folder, 's.train.0');
    for (const end of ['safetensors', 'optimizer.safetensors'])
      renameSync(join(folder, `weights/a@1.${end}`), join(folder, `weights/a.${end}`));
    rewriteHeaders(({ stem: _, ...plain }) => plain);
    fixture.restart();
    expect(valueIn(fixture.runs.get('s:train:0'), 'a')).toBe(0);
  });
});

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(255 - copy.readUInt8(copy.length - 1), copy.length - 1);
  return copy;
}

/** Makes the model's journal one of a service that wrote its records otherwise. */
function rewriteHeaders(change: (header: Record<string, unknown>) => unknown): void {
  const path = join(fixture.folder, 's.train.0', 'journal.log');
  const records: { header: unknown; payload: Uint8Array }[] = [];
  const bytes = readFileSync(path);
  const journal = Journal.open(path, ({ header, payload: { offset, length } }) => {
    records.push({ header: change(header as Record<string, unknown>), payload: bytes.subarray(offset, offset + length) });
  });
  journal.rewrite(records, () => {});
  journal.close();
}

const numberBytes = (value: number): Uint8Array => new Uint8Array(Float64Array.of(value).buffer);
