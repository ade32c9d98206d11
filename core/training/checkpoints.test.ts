import { expect, it } from 'vitest';
import type { SamplerPath, StatePath } from '../ids.ts';
import { type CheckpointBook, NO_CHECKPOINTS, resumePoint, withCheckpoint } from './checkpoints.ts';

const saved = (...steps: number[]): CheckpointBook =>
  steps.reduce(
    (book, step) =>
      withCheckpoint(book, { step, statePath: `tinker://state-${step}` as StatePath, samplerPath: 'tinker://s' as SamplerPath }),
    NO_CHECKPOINTS,
  );
const warm = 'tinker://warm' as StatePath;

it('after a degeneration goes on from the last checkpoint before the streak', () => {
  expect(resumePoint(saved(3, 7, 9), 8)).toMatchObject({ nextStep: 8, restoreFrom: 'tinker://state-7' });
  expect(resumePoint({ ...saved(3), warmupState: warm }, 3)).toEqual({ latest: null, nextStep: 0, restoreFrom: warm });
});

it('goes on after the highest step, wherever it stands in the book', () => {
  const book = saved(3, 7, 3);
  expect(book.checkpoints.map(({ step }) => step)).toEqual([7, 3]);
  expect(resumePoint(book).nextStep).toBe(8);
});

it.each([-1, 0.5, Number.NaN])('refuses a checkpoint of step %d', (step) => {
  expect(() => saved(step)).toThrow(RangeError);
});
