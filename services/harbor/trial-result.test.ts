import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { TrialCrashed } from './errors.ts';
import { parseTrialResult, type TrialOutcome } from './trial-result.ts';

const fixture = (name: string): string => readFileSync(new URL(`../../test/fixtures/harbor/${name}.json`, import.meta.url), 'utf8');

/** A real result with some of its fields replaced. */
function changed(name: string, change: Record<string, unknown>): string {
  return JSON.stringify({ ...JSON.parse(fixture(name)), ...change });
}

const exception = (type: string) => ({
  exception_type: type,
  exception_message: 'it broke',
  exception_traceback: '',
  occurred_at: '2026-01-01T00:00:00Z',
});
const rewarded = (reward: unknown) => ({ verifier_result: { rewards: { reward } } });

const cases: [what: string, text: string, expected: Partial<TrialOutcome>][] = [
  ['a solved trial', fixture('solved'), { reward: 1, executed: true, infraFailed: false, exceptionType: null }],
  ['an unsolved trial', fixture('failed'), { reward: 0, executed: true, infraFailed: false }],
  ['a verifier with two rewards', fixture('two-rewards'), { reward: 1, rewards: { reward: 1, format: 0.5 } }],
  ['a graded timeout counts', fixture('timeout-graded'), { reward: 1, executed: true, exceptionType: 'AgentTimeoutError' }],
  ['no reward file', fixture('no-reward'), { reward: null, executed: false, infraFailed: true, exceptionType: 'RewardFileNotFoundError' }],
  [
    'a timeout that left no reward',
    fixture('timeout-no-reward'),
    { reward: null, infraFailed: true, infraReason: 'the verifier reported no reward "reward" (no reward at all)' },
  ],
  ['a cancelled trial', fixture('cancelled'), { reward: null, infraFailed: true, exceptionType: 'CancelledError' }],
  ['a sandbox that did not start', fixture('environment-failed'), { reward: null, infraFailed: true, exceptionType: 'RuntimeError' }],
  ['an agent that counts its turns', fixture('custom-agent'), { reward: 1, agentTurns: 2, agentStop: null }],
  [
    'an agent that says why it stopped',
    changed('solved', { agent_result: { metadata: { stop: 'max_turns' } } }),
    { agentStop: 'max_turns' },
  ],
  ['a grader timeout', changed('failed', { exception_info: exception('VerifierTimeoutError') }), { reward: null, infraFailed: true }],
  [
    'an agent error beside a reward',
    changed('solved', { exception_info: exception('NonZeroAgentExitCodeError') }),
    { reward: null, infraReason: 'NonZeroAgentExitCodeError: it broke' },
  ],
  [
    'an exception in a step',
    changed('solved', { step_results: [{ exception_info: exception('ValueError') }] }),
    { reward: null, exceptionType: 'ValueError' },
  ],
  ['a reward above 1', changed('solved', rewarded(1.5)), { reward: null, infraReason: 'reward "reward" is 1.5, outside [0, 1]' }],
  ['a reward below 0', changed('solved', rewarded(-0.1)), { reward: null, infraFailed: true }],
  [
    'a reward that was not finite',
    changed('solved', rewarded(null)),
    { reward: null, infraReason: 'reward "reward" is not a finite number' },
  ],
  ['an infinite reward', changed('solved', rewarded(0)).replace('"reward":0}', '"reward":1e999}'), { reward: null, infraFailed: true }],
];

test.each(cases)('%s', (_what, text, expected) => {
  expect(parseTrialResult(text, 'reward')).toMatchObject(expected);
});

describe('the reward key', () => {
  test('chooses among several rewards', () => {
    expect(parseTrialResult(fixture('two-rewards'), 'format').reward).toBe(0.5);
  });
  test('that no verifier reported is an infrastructure failure that names what there was', () => {
    const outcome = parseTrialResult(fixture('two-rewards'), 'style');
    expect(outcome).toMatchObject({
      reward: null,
      infraFailed: true,
      infraReason: 'the verifier reported no reward "style" (only reward, format)',
    });
  });
});

test('phases become milliseconds, and those not reached are null', () => {
  const started = parseTrialResult(fixture('timeout-graded'), 'reward');
  expect(started.timings.agentMs).toBeGreaterThanOrEqual(6000); // its agent had six seconds
  expect(started.timings.totalMs).toBeGreaterThan(started.timings.agentMs ?? Number.POSITIVE_INFINITY);
  const { timings } = parseTrialResult(fixture('environment-failed'), 'reward');
  expect(timings).toMatchObject({ environmentSetupMs: expect.any(Number), agentSetupMs: null, agentMs: null, verifierMs: null });
});

const broken: [what: string, text: string, message: RegExp][] = [
  ['an empty file', '', /cut short/],
  ['half a file', fixture('solved').slice(0, 500), /cut short/],
  ['another JSON file', '{"job_name": "x"}', /not a harbor 0.25 trial result/],
  ['a reward that is text', changed('solved', rewarded('1')), /rewards/],
];
test.each(broken)('%s is refused', (_what, text, message) => {
  expect(() => parseTrialResult(text, 'reward')).toThrow(TrialCrashed);
  expect(() => parseTrialResult(text, 'reward')).toThrow(message);
});
