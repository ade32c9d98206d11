import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { ForeignResult } from './errors.ts';
import { readTrial, type TrialFiles, type TrialOutcome } from './trial-result.ts';

/** What users have reported of trials that were counted for what they were not. Each must be read as what it was. */

const SOLVED = readFileSync(new URL('../../test/fixtures/harbor/job-oracle-nop/hello-file__QC5ewNT/result.json', import.meta.url), 'utf8');

/** A real result with some of its fields replaced; `undefined` takes one away. */
const changed = (change: Record<string, unknown>) => JSON.stringify({ ...JSON.parse(SOLVED), ...change });
const read = (change: Record<string, unknown>, files: Partial<TrialFiles> = {}): TrialOutcome =>
  readTrial({ result: changed(change), testReport: null, trajectory: null, ...files }, { rewardKey: 'reward', maxTurns: 20 });

const broke = (exception_type: string) => ({
  exception_info: { exception_type, exception_message: 'it broke', exception_traceback: '', occurred_at: '2026-01-01T00:00:00Z' },
});
const graded = (reward: unknown) => ({ verifier_result: { rewards: { reward } } });
const ungraded = { verifier_result: null };

describe('all exception × reward combinations', () => {
  it.each<[what: string, change: Record<string, unknown>, expected: Partial<TrialOutcome>]>([
    ['none × reward', graded(0.5), { reward: 0.5, executed: true, fault: null, retry: 'never', infraReason: null }],
    ['none × no reward', ungraded, { reward: null, executed: false, fault: 'grader', retry: 'once', stopReason: null }],
    [
      'agent × reward',
      { ...graded(0), ...broke('AgentTimeoutError') },
      { reward: 0, executed: true, fault: 'budget', retry: 'never', stopReason: 'budget' },
    ],
    [
      'agent × no reward',
      { ...ungraded, ...broke('AgentTimeoutError') },
      { reward: null, executed: false, fault: 'budget', retry: 'again' },
    ],
    [
      'grader × reward: verifier timeout with a reward',
      { ...graded(1), ...broke('VerifierTimeoutError') },
      { reward: 1, passed: true, executed: true, stopReason: null },
    ],
    [
      'grader × no reward: verifier timeout without a reward',
      { ...ungraded, ...broke('VerifierTimeoutError') },
      { reward: null, executed: false, fault: 'grader', retry: 'never', stopReason: null },
    ],
    [
      'model × reward: it says nothing about a model that was not asked',
      { ...graded(0), ...broke('ApiRateLimitError') },
      {
        reward: null,
        executed: false,
        setAside: 0,
        fault: 'model',
        retry: 'again',
        infraReason: 'ApiRateLimitError: it broke; its reward 0 does not count beside that',
      },
    ],
    ['model × no reward', { ...ungraded, ...broke('AgentAuthenticationError') }, { executed: false, fault: 'model', retry: 'never' }],
    ['sandbox × reward', { ...graded(1), ...broke('HealthcheckError') }, { reward: null, passed: false, setAside: 1, fault: 'sandbox' }],
    [
      'sandbox × no reward',
      { ...ungraded, ...broke('EnvironmentStartTimeoutError') },
      { executed: false, fault: 'sandbox', retry: 'again' },
    ],
  ])('%s', (_, change, expected) => {
    expect(read(change)).toMatchObject(expected);
  });

  it('a step whose sandbox broke spoils the reward of the steps before it, whatever harbor recorded first', () => {
    const { exception_info } = broke('HealthcheckError');
    const outcome = read({ ...graded(1), ...broke('AgentTimeoutError'), step_results: [{ exception_info }] });
    expect(outcome).toMatchObject({ executed: false, exceptionType: 'HealthcheckError', fault: 'sandbox' });
  });
});

const phase = { started_at: '2026-01-01T00:00:00Z', finished_at: '2026-01-01T00:00:01Z' };
it.each([
  ['before the agent began', 'sandbox', { agent_execution: null, verifier: null }],
  ['while the agent ran', 'agent', { agent_execution: phase, verifier: null }],
  ['when the grader had begun', 'grader', { agent_execution: phase, verifier: phase }],
  ['in a step', 'agent', { agent_execution: null, verifier: null, step_results: [{ exception_info: null }] }],
])('an exception that nobody listed is put down to whose turn it was: %s', (_, fault, phases) => {
  expect(read({ ...ungraded, ...broke('RuntimeError'), ...phases })).toMatchObject({ executed: false, fault, retry: 'again' });
});

describe('a reward file was written, but its echo in the result is missing', () => {
  it.each([
    ['nothing else', ungraded, {}],
    ['the grader ran out of time', ungraded, broke('VerifierTimeoutError')],
    ['its folder was lost on the way', ungraded, broke('DownloadVerifierDirError')],
    ['other rewards were reported', { verifier_result: { rewards: {} } }, {}],
  ])('is no reward, and is named: %s', (_, verifier, exception) => {
    const outcome = read({ ...verifier, ...exception }, { rewardFile: 'verifier/reward.txt' });
    expect(outcome).toMatchObject({ reward: null, executed: false, infraFailed: true });
    expect(outcome.infraReason).toMatch(/no reward "reward" \(no reward at all, though verifier\/reward\.txt is there\)$/);
  });

  it('and a file beside a reported reward changes nothing', () => {
    expect(read(graded(1), { rewardFile: 'verifier/reward.json' })).toMatchObject({ reward: 1, infraReason: null });
  });
});

describe('a reward that is not a number', () => {
  it.each<[unknown, string]>([
    ['1', 'is "1", not a number'],
    [true, 'is true, not a number'],
    [[1], 'is [1], not a number'],
    [{ value: 1 }, 'is {"value":1}, not a number'],
    [null, 'is not a finite number'],
  ])('%j spoils this trial only', (reward, told) => {
    const outcome = read(graded(reward));
    expect(outcome).toMatchObject({ reward: null, passed: false, executed: false, fault: 'grader', retry: 'never' });
    expect(outcome.infraReason).toBe(`reward "reward" ${told}`);
  });

  it('1e999 is not finite', () => {
    const result = changed(graded(7)).replace('"reward":7', '"reward":1e999');
    const outcome = readTrial({ result, testReport: null, trajectory: null }, { rewardKey: 'reward' });
    expect(outcome).toMatchObject({ reward: null, executed: false, infraReason: 'reward "reward" is not a finite number' });
  });

  it('NaN is no JSON: the file is unreadable, and the place is told', () => {
    const result = changed(graded(7)).replace('"reward":7', '"reward":NaN');
    expect(() => readTrial({ result, testReport: null, trajectory: null }, { rewardKey: 'reward' })).toThrow(/not JSON.*Unexpected token/);
  });
});

describe("a harbor result of another version's shape", () => {
  const message = (text: string) => {
    try {
      readTrial({ result: text, testReport: null, trajectory: null }, { rewardKey: 'reward' });
    } catch (error) {
      expect(error).toBeInstanceOf(ForeignResult);
      return (error as Error).message;
    }
    throw new Error('it was read');
  };

  test('of another version of harbor names the version and the first fields, in one line', () => {
    const told = message(changed({ harbor_version: '0.31.2', trial_name: undefined, started_at: 5, finished_at: 6, agent_result: 'gone' }));
    expect(told).toMatch(/not a harbor 0\.25 trial result \(it says harbor_version 0\.31\.2; trial_name: .*; and 1 more\)/);
    expect(told).toMatch(/install that version/);
    expect(told).not.toContain('\n');
  });
  test('of a harbor that tells no version says what is wrong', () => {
    expect(message('{"verdict": "passed"}')).toMatch(/\(trial_name: /);
    expect(message('[]')).toMatch(/\(the file: /);
  });
  test('that is a job’s says so', () => {
    expect(message('{"n_total_trials": 6, "stats": {}}')).toMatch(/\(it is the result of a job\)/);
  });
});
