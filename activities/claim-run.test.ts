import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CONFIG, failureOf, Project } from './testing/project.ts';

let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

describe('a run id', () => {
  it('is taken for good: another execution is refused', async () => {
    await project.resolve();
    const failure = await failureOf(project.resolve({}, { executionId: 'e2' }));
    expect(failure).toMatchObject({ type: 'BadRunInput', nonRetryable: true });
    expect(failure.message).toBe('run id: first was used before: start the run under another id');
  });

  it('is taken wherever its first run had its folder', async () => {
    await project.resolve({ runDir: 'elsewhere' });
    expect((await failureOf(project.resolve({ runDir: 'third' }, { executionId: 'e2' }))).message).toMatch(
      /^run id: first was used before/,
    );
    expect(await project.names('third')).toEqual([]);
  });

  it('is taken on every machine that shares the store', async () => {
    await project.resolve();
    await using elsewhere = await Project.make(project.objects);
    expect((await failureOf(elsewhere.resolve({}, { executionId: 'e2' }))).message).toMatch(/^run id: first was used before/);
    expect(await elsewhere.names('runs')).toEqual([]);
    expect(await elsewhere.resolve()).toMatchObject({ runId: 'first' });
  });

  it('goes to one of two executions that come at once on two machines', async () => {
    await using elsewhere = await Project.make(project.objects);
    const tries = [project.resolve({}, { executionId: 'e1' }), elsewhere.resolve({}, { executionId: 'e2' })];
    const ended = await Promise.allSettled(tries);
    expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('is taken though its folder is gone', async () => {
    await project.resolve();
    await rm(join(project.root, 'runs'), { recursive: true });
    expect((await failureOf(project.resolve({}, { executionId: 'e2' }))).message).toMatch(/^run id: first was used before/);
  });

  it('may come again with the same execution, and gets the same pin', async () => {
    const pinned = await project.resolve();
    expect(await project.resolve()).toEqual(pinned);
  });

  it('and its file say what the last attempt of the execution pinned', async () => {
    await project.resolve();
    await project.file('run.toml', CONFIG.replace('steps = 3', 'steps = 4'));
    expect((await project.resolve()).plan.steps).toBe(4);
    expect(JSON.parse(await readFile(join(project.root, 'runs/first/run.json'), 'utf8'))).toMatchObject({ plan: { steps: 4 } });
  });

  it('is not lost to an attempt that died before its claim was whole', async () => {
    await project.file('runs/first/run.json.0.partial', '{"runId":');
    expect(await project.resolve()).toMatchObject({ runId: 'first' });
  });

  it('is taken by a claim that cannot be read', async () => {
    await project.file('runs/first/run.json', '{"runId":');
    expect((await failureOf(project.resolve())).message).toMatch(/^run id: first was used before/);
  });

  it('goes to one of two executions that come at once', async () => {
    const tries = ['e1', 'e2', 'e3', 'e4'].map((executionId) => project.resolve({}, { executionId }));
    const ended = await Promise.allSettled(tries);
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const end of ended) if (end.status === 'rejected') expect(end.reason).toMatchObject({ type: 'BadRunInput', nonRetryable: true });
  });

  it.each(['', '.hidden', 'a/b', '../a', 'a b', 'x'.repeat(101), 'a\n'])('%j is refused', async (runId) => {
    expect(await failureOf(project.resolve({}, { runId }))).toMatchObject({
      type: 'BadRunInput',
      message: expect.stringMatching(/^run id: /),
    });
  });
});

it('a folder that belongs to another run is named with it', async () => {
  await project.resolve({ runDir: 'shared' });
  const failure = await failureOf(project.resolve({ runDir: 'shared' }, { runId: 'second', executionId: 'e2' }));
  expect(failure.message).toBe('runDir: shared belongs to run first: name another folder');
  expect(await project.names('runs')).toEqual(['first']);
});
