import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { done, gradient, RunsFixture, save, step, valueIn } from './testing/runs-fixture.ts';
import type { TrainingRun } from './training-run.ts';

let fixture: RunsFixture;
beforeEach(() => {
  fixture = new RunsFixture();
});
afterEach(() => fixture.remove());

describe('gradients that wait for a step', () => {
  it('are gathered again after a restart, also for a call that was under way', async () => {
    const run = fixture.begin();
    run.submit(1, gradient, new Uint8Array([2]));
    run.submit(2, step);
    run.submit(3, gradient, new Uint8Array([4]));
    await done(run, 3);
    fixture.backend.hold = new Promise(() => {});
    run.submit(4, gradient, new Uint8Array([6]));
    run.submit(5, step);
    fixture.restart();
    const again = fixture.runs.get('s:train:0');
    expect(again.future(3)).toEqual({ kind: 'proto', bytes: new Uint8Array([4, 1]) });
    again.submit(6, save('a'));
    await done(again, 6);
    expect(fixture.backend.calls).toEqual(['gradient 4', 'gradient 6', 'step']);
    expect(valueIn(again, 'a')).toBe(1 + 5);
  });

  it('are kept with their results when the model is unloaded in the middle', async () => {
    const run = fixture.begin();
    for (let seq = 1; seq <= 40; seq += 1) run.submit(seq, gradient, new Uint8Array([1]));
    await done(run, 40);
    fetchAll(run, 40);
    await run.unload();
    run.submit(40, gradient, new Uint8Array([1]));
    run.submit(41, step);
    run.submit(42, save('a'));
    await done(run, 42);
    expect(valueIn(run, 'a')).toBe(20);
    await run.unload();
    expect(run.future(3)).toEqual({ kind: 'gone' });
    expect(run.future(40)).toMatchObject({ kind: 'proto' });
  });

  it.each<[string, (run: TrainingRun) => Promise<TrainingRun>]>([
    ['a restart', async () => afterRestart()],
    ['an unload', async (run) => run.unload().then(() => run)],
    ['an unload and a restart', async (run) => run.unload().then(afterRestart)],
    ['a failure in the engine', failed],
  ])('all count after %s, however many they are', async (_, disturbed) => {
    let run = fixture.begin();
    for (let seq = 1; seq <= MANY; seq += 1) run.submit(seq, gradient, new Uint8Array([2]));
    await done(run, MANY);
    fetchAll(run, MANY);
    run = await disturbed(run);
    fetchAll(run, MANY);
    expect(run.future(1)).toMatchObject({ kind: 'proto' });
    const next = run.future(MANY + 1).kind === 'unknown' ? MANY + 1 : MANY + 2;
    run.submit(next, step);
    run.submit(next + 1, save('a'));
    await done(run, next + 1);
    expect(valueIn(run, 'a')).toBe(MANY);
    run.fetch(next);
    expect(run.future(1)).toEqual({ kind: 'gone' });
  });
});

/** More than a model's remembered results, once they were fetched. */
const MANY = 1100;

function fetchAll(run: TrainingRun, calls: number): void {
  for (let seq = 1; seq <= calls; seq += 1) run.fetch(seq);
}

function afterRestart(): TrainingRun {
  fixture.restart();
  return fixture.runs.get('s:train:0');
}

/** A call that fails empties the engine. */
async function failed(run: TrainingRun): Promise<TrainingRun> {
  run.submit(MANY + 1, gradient, new Uint8Array([255]));
  await done(run, MANY + 1);
  return run;
}
