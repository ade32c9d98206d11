import { beforeEach, describe, expect, it } from 'vitest';
import type { StatePath } from '../../core/ids.ts';
import { readBranchSource } from './branch-source.ts';
import { claimKey, filesOf } from './run-keys.ts';
import { SavedStates } from './saved-states.ts';
import { MemoryObjects } from './testing/memory-objects.ts';

const RECORD = {
  runId: 'old',
  executionId: 'e',
  config: { student: { base_model: 's', lora_rank: 8 }, rollout: { renderers: { s: 'qwen3' }, max_turns: 3 } },
  train: [{ id: 'a', path: 'tasks/a', digest: 'd' }],
  trainContents: ['da'],
  branch: null,
};
const state = (name: string) => ({ name, path: `tinker://m/weights/${name}` as StatePath, updates: 2, savedAtMs: 5 });

let objects: MemoryObjects;
const put = (name: string, value: unknown) => objects.put(`${filesOf('old')}${name}`, new TextEncoder().encode(JSON.stringify(value)));
beforeEach(() => {
  objects = new MemoryObjects();
});

describe('the log of saved states', () => {
  it('has them in the order they were saved, and one that is noted again once', async () => {
    const log = new SavedStates(objects, 'old');
    for (const name of ['step-0002', 'step-0001', 'step-0001', 'step-0002']) await log.note(state(name));
    expect(await log.all()).toEqual([state('step-0002'), state('step-0001'), state('step-0002')]);
    expect(await new SavedStates(objects, 'old.b').all()).toEqual([]);
  });

  it('loses none when two write at once', async () => {
    const logs = ['a', 'b', 'c'].map((name) => new SavedStates(objects, 'old').note(state(name)));
    await Promise.all(logs);
    expect((await new SavedStates(objects, 'old').all()).map(({ name }) => name).sort()).toEqual(['a', 'b', 'c']);
  });
});

describe('a run as another finds it that starts from it', () => {
  it('is read from the store alone', async () => {
    await put('run.json', RECORD);
    await new SavedStates(objects, 'old').note(state('step-0001'));
    expect(await readBranchSource(objects, 'old')).toEqual({
      runId: 'old',
      executionId: 'e',
      config: { student: { base_model: 's', lora_rank: 8 }, rollout: { renderers: { s: 'qwen3' } } },
      train: [{ id: 'a', contentDigest: 'da' }],
      branch: null,
      states: [state('step-0001')],
      tripped: null,
    });
  });

  it.each([
    ['stopped by tripwire', { restoreFrom: 'tinker://m/weights/x' }],
    ['stopped', null],
    ['accepted', null],
  ])('that ended as "%s"', async (outcome, tripped) => {
    await put('run.json', RECORD);
    await put('status.json', { outcome, resume: { latest: null, restoreFrom: 'tinker://m/weights/x' }, step: 3 });
    expect(await readBranchSource(objects, 'old')).toMatchObject({ tripped });
  });

  it('is unknown, or was collected', async () => {
    expect(await readBranchSource(objects, 'old')).toBe('unknown');
    await objects.create(claimKey('old'), new Uint8Array(1));
    expect(await readBranchSource(objects, 'old')).toBe('collected');
  });
});
