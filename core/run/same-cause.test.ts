import { describe, expect, it } from 'vitest';
import type { TrialId } from '../ids.ts';
import { causeOf, nextStreak, type Streak, sameCauseText, usualSameCauseFailures } from './same-cause.ts';
import { trialOf } from './testing/facts.ts';

const failed = (exceptionMessage: string, known: object = {}) =>
  trialOf({ executed: false, exceptionType: 'RuntimeError', exceptionMessage, fault: 'sandbox', ...known });

describe('two failures have the same cause', () => {
  it.each([
    ['but for numbers', 'timed out after 6.0 seconds', 'timed out after 12.5 seconds'],
    ['but for paths', 'no file at /tmp/a-1/x.txt', 'no file at /var/jobs/b/y.txt'],
    ['but for relative paths', 'none at jobs/one__Ab1/verifier/reward.txt', 'none at jobs/two__Zz9/verifier/reward.txt'],
    ['but for ids', 'sandbox 3f2a91bc-77 is gone', 'sandbox 90ab12ef-01 is gone'],
    ['but for line ends', 'it\n  broke', 'it broke'],
  ])('%s', (_, one, other) => {
    expect(causeOf(failed(one))).toBe(causeOf(failed(other)));
  });

  it('but for the names of trial and task', () => {
    const of = (trialId: string, taskId: string) => causeOf(failed(`${taskId}: trial ${trialId} broke`, { trialId, taskId }));
    expect(of('0123abcd-s0001-a', 'copy-sun')).toBe(of('0123abcd-s0001-b', 'move-moon'));
  });

  it.each([
    ['other words', failed('no space left'), failed('no such file')],
    ['another exception', failed('it broke'), failed('it broke', { exceptionType: 'ValueError' })],
    ['no exception at all', failed('it broke'), failed('it broke', { exceptionType: null })],
  ])('not with %s', (_, one, other) => {
    expect(causeOf(one)).not.toBe(causeOf(other));
  });
});

describe('a streak', () => {
  const streakOf = (...trials: Parameters<typeof nextStreak>[1][]) => trials.reduce<Streak | null>(nextStreak, null);

  it('grows with each failure of the same cause, and tells the last', () => {
    const last = failed('it broke at 2', { trialId: 'second' as TrialId });
    expect(streakOf(failed('it broke at 1'), last)).toMatchObject({
      inARow: 2,
      trialId: 'second',
      words: 'it broke at 2',
      fault: 'sandbox',
    });
  });
  it('begins anew with another cause, and ends with a trial that was executed', () => {
    expect(streakOf(failed('a'), failed('a'), failed('b'))).toMatchObject({ inARow: 1 });
    expect(streakOf(failed('a'), trialOf(), failed('a'))).toMatchObject({ inARow: 1 });
    expect(streakOf(failed('a'), trialOf())).toBeNull();
  });
  it('keeps little of endless words', () => {
    expect(streakOf(failed('x'.repeat(5000)))?.words).toHaveLength(300);
  });
  it('is told with its cause, how often, one trial and what to do', () => {
    const streak = streakOf(failed('it broke'), failed('it broke'));
    expect(streak && sameCauseText('step 3', streak)).toMatch(
      /^step 3: 2 trials in a row failed for the same cause.*: it broke\n.*trial trial of task a\..*stillroom doctor.*harbor\.same_cause_failures/,
    );
  });
});

it('one event that breaks all trials that run is not enough to end a run', () => {
  expect([1, 7, 8, 64].map(usualSameCauseFailures)).toEqual([8, 8, 9, 65]);
});
