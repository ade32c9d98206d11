import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seedFromName } from '../random/seeded.ts';
import { planMinibatches } from './minibatches.ts';
import { drawTasks } from './task-sampler.ts';

const ids = (n: number) => Array.from({ length: n }, (_, i) => `task-${i}`);

describe('drawTasks', () => {
  it('draws every task once per epoch and none twice in a batch, whatever the sizes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 15 }), fc.string(), (n, tasksPerBatch, name) => {
        const taskIds = ids(n);
        const seed = seedFromName(name);
        const epochs = 4;
        const draws: string[] = [];
        for (let step = 0; draws.length < epochs * n; step++) {
          const batch = drawTasks({ taskIds, tasksPerBatch, step, seed });
          expect(new Set(batch).size).toBe(Math.min(n, tasksPerBatch));
          draws.push(...batch);
        }
        for (let e = 0; e < epochs; e++) expect(draws.slice(e * n, (e + 1) * n).sort()).toEqual([...taskIds].sort());
      }),
    );
  });

  it('needs nothing but the step to go on: later steps do not depend on which were drawn before', () => {
    const draw = (step: number) => drawTasks({ taskIds: ids(7), tasksPerBatch: 3, step, seed: seedFromName('run-a') });
    const uninterrupted = Array.from({ length: 9 }, (_, step) => draw(step));
    expect([8, 5, 6, 5, 0].map(draw)).toEqual([8, 5, 6, 5, 0].map((step) => uninterrupted[step]));
  });

  it('loses no draw where a batch runs over the end of an epoch', () => {
    const steps = Array.from({ length: 7 }, (_, step) =>
      drawTasks({ taskIds: ids(7), tasksPerBatch: 5, step, seed: seedFromName('run-a') }),
    );
    const drawn = steps.flat();
    for (const id of ids(7)) expect(drawn.filter((one) => one === id)).toHaveLength(5);
    for (const batch of steps) expect(new Set(batch).size).toBe(5);
  });

  it('orders epochs differently, and runs of another name too', () => {
    const draw = (step: number, name: string) => drawTasks({ taskIds: ids(8), tasksPerBatch: 8, step, seed: seedFromName(name) });
    expect(draw(1, 'run-a')).not.toEqual(draw(0, 'run-a'));
    expect(draw(0, 'run-b')).not.toEqual(draw(0, 'run-a'));
  });
});

describe('planMinibatches', () => {
  it('makes exactly min(substeps, sources) updates whose source counts differ by at most one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 3 }),
        (n, numSubsteps, copies) => {
          const sources = Array.from({ length: n * copies }, (_, i) => Math.floor(i / copies));
          const chunks = planMinibatches({ sources, numSubsteps, runName: 'run-a', step: 3 });
          expect(chunks.length).toBe(Math.min(numSubsteps, n));
          expect(chunks.flat().sort((a, b) => a - b)).toEqual(sources.map((_, i) => i));
          const counts = chunks.map((chunk) => new Set(chunk.map((i) => sources[i])).size);
          expect(counts.reduce((a, b) => a + b, 0)).toBe(n);
          if (n > 0) expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  it('never groups what only looks alike: with a substep per datum each is an update of its own, replicas together', () => {
    const chunks = planMinibatches({ sources: [0, 0, 1, 1, 2, 2], numSubsteps: 3, runName: 'run-a', step: 0 });
    expect(chunks.toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0))).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
  });

  it('gives four updates for four substeps over five datums', () => {
    expect(planMinibatches({ sources: [0, 1, 2, 3, 4], numSubsteps: 4, runName: 'run-a', step: 0 })).toHaveLength(4);
  });

  it('shuffles another way at another step', () => {
    const plan = (step: number) =>
      planMinibatches({ sources: Array.from({ length: 30 }, (_, i) => i), numSubsteps: 2, runName: 'run-a', step });
    expect(plan(1)).not.toEqual(plan(0));
  });

  it('refuses zero substeps', () => {
    expect(() => planMinibatches({ sources: [0], numSubsteps: 0, runName: 'a', step: 0 })).toThrow(/num_substeps/);
  });
});
