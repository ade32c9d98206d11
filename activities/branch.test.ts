import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StatePath } from '../core/ids.ts';
import { collectRun, judge, keptRuns, type RunState } from '../services/blobs/gc.ts';
import { SavedStates } from '../services/blobs/saved-states.ts';
import { CONFIG, failureOf, Project } from './testing/project.ts';

/** How a run finds what it starts from. */

let project: Project;
beforeEach(async () => {
  project = await Project.make();
  await project.resolve({}, { runId: 'old', executionId: 'e0' });
  await saved('step-0001');
  await saved('step-0002');
});
afterEach(() => project[Symbol.asyncDispose]());

const pathOf = (name: string) => `tinker://m/weights/${name}` as StatePath;
const saved = (name: string) =>
  new SavedStates(project.objects, 'old').note({ name, path: pathOf(name), updates: Number(name.slice(-1)), savedAtMs: 5 });
const branched = (from: string, more = {}) => project.resolve({ from, ...more }, { runId: 'new', executionId: 'e1' });

describe('a run that starts from another', () => {
  it('pins the state that was the last when it was resolved, and its folder says so', async () => {
    const branch = {
      statePath: pathOf('step-0002'),
      updates: 2,
      source: { runId: 'old', executionId: 'e0', state: 'step-0002', savedAtMs: 5 },
    };
    const pinned = await branched('old');
    await saved('step-0003');
    expect(pinned.branch).toEqual(branch);
    expect((await project.records.load(pinned.ref)).branch).toEqual(branch);
    expect(JSON.parse(await readFile(join(project.root, 'runs/new/run.json'), 'utf8'))).toMatchObject({ branch });
    expect((await project.resolve({}, { runId: 'plain', executionId: 'e2' })).branch).toBeNull();
  });

  it('finds it on another machine that shares the store', async () => {
    await using elsewhere = await Project.make(project.objects);
    const pinned = await elsewhere.resolve({ from: 'old@step-1' }, { runId: 'new', executionId: 'e1' });
    expect(pinned.branch?.statePath).toBe(pathOf('step-0001'));
  });

  it('is warned of weights that nobody knows the training of', async () => {
    expect((await branched('tinker://x/weights/y')).warnings).toEqual([
      expect.stringMatching(/nobody knows what tinker:\/\/x\/weights\/y was trained on/),
    ]);
  });

  it.each([
    [
      'another rank',
      'old',
      { config: CONFIG.replace('[student]', '[student]\nlora_rank = 4') },
      /^from: student\.lora_rank is 4 and was 32 in old/,
    ],
    ['a step that was not saved', 'old@step-7', {}, /^from: run old has saved no state step-7; it has saved step-0001, step-0002$/],
    [
      'held-out tasks that it was trained on',
      'old',
      { taskIds: ['x'], holdoutTaskIds: ['y', 'b'] },
      /^from: .*trained on held-out tasks: b \(run old\)/,
    ],
  ])('is refused with %s', async (_, from, more, reason) => {
    const { type, message } = await failureOf(branched(from, more));
    expect([type, message]).toEqual(['BadRunInput', expect.stringMatching(reason)]);
    expect(await project.names('runs/new')).toEqual([]);
  });

  it('is refused with a held-out task that it was trained on under another name', async () => {
    await project.task('twin', { content: 'a' });
    expect((await failureOf(branched('old', { taskIds: ['b'], holdoutTaskIds: ['twin'] }))).message).toMatch(/twin = a \(run old\)/);
  });
});

it('what a run started from is kept while the run is, and goes with it', async () => {
  await branched('old');
  const judged = async (stateOf: (runId: string) => RunState) =>
    Object.fromEntries(
      judge(await keptRuns(project.objects), stateOf, { runIds: null, writtenBeforeMs: null }).map(({ runId, kept }) => [runId, kept]),
    );
  expect(await judged((runId) => (runId === 'new' ? 'running' : 'ended'))).toEqual({ old: 'read by new', new: 'running' });
  expect(await judged(() => 'ended')).toEqual({ old: null, new: null });
  await collectRun(project.objects, 'old');
  expect((await failureOf(project.resolve({ from: 'old' }, { runId: 'late', executionId: 'e3' }))).message).toMatch(
    /^from: the store keeps nothing of run old any more; .*by their path/,
  );
});
