import { expect, it } from 'vitest';
import { parseRunConfig } from '../config/parse.ts';
import type { SamplerPath, StatePath } from '../ids.ts';
import { checkTripwire } from '../measures/guards.ts';
import { NO_GUARD_STATE } from '../run/results.ts';
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

it('the streak that ended a run tells where it began, steps in between that measured nothing included', () => {
  const parsed = parseRunConfig('[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n', 'run.toml');
  if (!parsed.ok) throw new Error('the minimal config is fine');
  const entropies = [0.2, 0.01, 0.2, 0.2, 0.01, null, 0.01];
  let guard = NO_GUARD_STATE;
  const kills = entropies.map((entropyNatsPerToken, step) => {
    const measured = { entropyNatsPerToken, sampledTokensPerEpisode: entropyNatsPerToken === null ? null : 1000 };
    const check = checkTripwire(guard, step, measured, parsed.config.tripwire);
    guard = JSON.parse(JSON.stringify(check.guard));
    return check.kill;
  });
  expect(kills).toEqual([false, false, false, false, false, false, true]);
  expect(resumePoint(saved(1, 3, 4, 5, 6), guard.killStreakFrom ?? undefined)).toMatchObject({
    nextStep: 4,
    restoreFrom: 'tinker://state-3',
  });
});

it('goes on after the highest step, wherever it stands in the book', () => {
  const book = saved(3, 7, 3);
  expect(book.checkpoints.map(({ step }) => step)).toEqual([7, 3]);
  expect(resumePoint(book).nextStep).toBe(8);
});

it.each([-1, 0.5, Number.NaN])('refuses a checkpoint of step %d', (step) => {
  expect(() => saved(step)).toThrow(RangeError);
});
