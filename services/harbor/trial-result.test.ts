import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { TrialCrashed } from './errors.ts';
import { readTrial, type TrialFiles, type TrialOutcome } from './trial-result.ts';

/** Real results: the folders are those of `test/fixtures/harbor`. */
const FOLDERS: Readonly<Record<string, string>> = {
  solved: 'job-oracle-nop/hello-file__QC5ewNT',
  failed: 'job-oracle-nop/hello-file__jyZ9vmL',
  'two-rewards': 'job-oracle-nop/sum-numbers__WmhaptA',
  'timeout-graded': 'job-terminus-2/hello-file__zjTwSbf',
  'timeout-no-reward': 'job-terminus-2/no-reward__obW6JE5',
  'no-reward': 'job-terminus-2/no-reward__CXzXnZM',
  cancelled: 'misc/trial-cancelled',
  'environment-failed': 'misc/trial-environment-start-failed',
  'custom-agent': 'misc/trial-custom-agent',
};
const fixture = (name: string): string =>
  readFileSync(new URL(`../../test/fixtures/harbor/${FOLDERS[name]}/result.json`, import.meta.url), 'utf8');
const read = (result: string, rewardKey = 'reward', files: Partial<TrialFiles> = {}): TrialOutcome =>
  readTrial({ result, testReport: null, trajectory: null, ...files }, { rewardKey, maxTurns: 20 });

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
const counted = (n_episodes: unknown) => ({ agent_result: { metadata: { n_episodes } } });

const cases: [what: string, text: string, expected: Partial<TrialOutcome>][] = [
  [
    'a solved trial',
    fixture('solved'),
    { reward: 1, passed: true, executed: true, infraFailed: false, exceptionType: null, retry: 'never' },
  ],
  ['an unsolved trial', fixture('failed'), { reward: 0, executed: true, infraFailed: false }],
  ['a verifier with two rewards', fixture('two-rewards'), { reward: 1, rewards: { reward: 1, format: 0.5 } }],
  [
    'a graded timeout counts',
    fixture('timeout-graded'),
    { reward: 1, executed: true, exceptionType: 'AgentTimeoutError', stopReason: 'budget' },
  ],
  ['no reward file', fixture('no-reward'), { reward: null, executed: false, exceptionType: 'RewardFileNotFoundError', retry: 'never' }],
  [
    'a timeout that left no reward',
    fixture('timeout-no-reward'),
    {
      reward: null,
      infraReason: expect.stringMatching(/^AgentTimeoutError: .*; the verifier reported no reward "reward"/),
      retry: 'again',
    },
  ],
  ['a cancelled trial', fixture('cancelled'), { reward: null, infraFailed: true, exceptionType: 'CancelledError', retry: 'again' }],
  ['a sandbox that did not start', fixture('environment-failed'), { reward: null, exceptionType: 'RuntimeError', stopReason: 'error' }],
  ['an agent that counts its turns', fixture('custom-agent'), { reward: 1, agentTurns: 2, stopReason: null }],
  [
    'a grader timeout',
    changed('failed', { verifier_result: null, exception_info: exception('VerifierTimeoutError') }),
    { reward: null, infraFailed: true, fault: 'grader', retry: 'never' },
  ],
  ['a grader timeout after the reward', changed('failed', { exception_info: exception('VerifierTimeoutError') }), { reward: 0 }],
  [
    'an agent error beside a reward',
    changed('solved', { exception_info: exception('NonZeroAgentExitCodeError') }),
    { reward: 1, executed: true, stopReason: 'error' },
  ],
  [
    'an exception in a step',
    changed('solved', { verifier_result: null, step_results: [{ exception_info: exception('ValueError') }] }),
    { reward: null, exceptionType: 'ValueError', infraReason: expect.stringMatching(/^ValueError: it broke; /) },
  ],
  [
    'a verifier that neither answered nor failed',
    changed('solved', { verifier_result: null }),
    { reward: null, infraFailed: true, retry: 'once' },
  ],
  [
    'a reward above 1 spoils this trial only',
    changed('solved', rewarded(1.5)),
    { reward: null, infraFailed: true, infraReason: 'reward "reward" is 1.5, outside [0, 1]', retry: 'never' },
  ],
  [
    'a reward above 1 beside an exception',
    changed('solved', { ...rewarded(2), exception_info: exception('RuntimeError') }),
    { reward: null, infraFailed: true, infraReason: 'RuntimeError: it broke; reward "reward" is 2, outside [0, 1]', retry: 'again' },
  ],
  [
    'an empty table of rewards',
    changed('solved', { verifier_result: { rewards: {} } }),
    { reward: null, infraFailed: true, infraReason: 'the verifier reported no reward "reward" (no reward at all)', retry: 'never' },
  ],
  [
    'the bounds themselves count',
    changed('solved', rewarded(0)),
    { reward: 0, passed: false, executed: true, infraFailed: false, retry: 'never' },
  ],
  ['a reward below 0', changed('solved', rewarded(-0.1)), { reward: null, infraFailed: true }],
  [
    'a reward that was not finite',
    changed('solved', rewarded(null)),
    { reward: null, infraReason: 'reward "reward" is not a finite number' },
  ],
  ['an infinite reward', changed('solved', rewarded(0)).replace('"reward":0}', '"reward":1e999}'), { reward: null, infraFailed: true }],
];

test.each(cases)('%s', (_what, text, expected) => {
  expect(read(text)).toMatchObject(expected);
});

describe('the reward key', () => {
  test('chooses among several rewards', () => {
    expect(read(fixture('two-rewards'), 'format').reward).toBe(0.5);
  });
  test('that no verifier reported is an infrastructure failure that names what there was, and would be so again', () => {
    expect(read(fixture('two-rewards'), 'style')).toMatchObject({
      reward: null,
      infraFailed: true,
      infraReason: 'the verifier reported no reward "style" (only reward, format)',
      retry: 'never',
    });
  });
});

describe('the stop reason', () => {
  const step = (...calls: string[]) => ({ source: 'agent', tool_calls: calls.map((function_name) => ({ function_name })) });
  const submitted = JSON.stringify({ steps: [step('bash_command'), step('bash_command', 'mark_task_complete'), { source: 'user' }] });
  const reason = (change: Record<string, unknown>, trajectory: string | null) =>
    read(changed('solved', change), 'reward', { trajectory }).stopReason;

  test.each<[what: string, expected: string | null, change: Record<string, unknown>, trajectory: string | null]>([
    ['our own agent says done', 'submitted', { agent_result: { metadata: { stop: 'done' } } }, null],
    ['our own agent says another word', 'overflow', { agent_result: { metadata: { stop: 'overflow' } } }, null],
    ['completion was declared', 'submitted', counted(3), submitted],
    ['completion was declared on the last turn', 'submitted', counted(20), submitted],
    [
      'completion was declared and the grader failed',
      'submitted',
      { ...counted(3), exception_info: exception('VerifierTimeoutError') },
      submitted,
    ],
    [
      'our own agent says done and the grader failed',
      'submitted',
      { agent_result: { metadata: { stop: 'done' } }, exception_info: exception('RewardFileNotFoundError') },
      null,
    ],
    [
      'completion was declared on the last turn and the grader failed',
      'submitted',
      { ...counted(20), verifier_result: null, exception_info: exception('VerifierOutputParseError') },
      submitted,
    ],
    ['completion was declared and the agent failed', 'error', { ...counted(3), exception_info: exception('RuntimeError') }, submitted],
    ['all turns were used', 'max_turns', counted(20), JSON.stringify({ steps: [step('bash_command')] })],
    ['the agent returned early', 'error', counted(5), null],
    ['an earlier step declared completion', 'error', counted(5), JSON.stringify({ steps: [step('mark_task_complete'), step()] })],
    ['the count is no number', null, counted(true), submitted],
    ['the context was full', 'provider_error', { exception_info: exception('ContextLengthExceededError') }, null],
  ])('%s', (_what, expected, change, trajectory) => {
    expect(reason(change, trajectory)).toBe(expected);
  });
});

test('phases become milliseconds, and those not reached are null', () => {
  const started = read(fixture('timeout-graded'));
  expect(started.timings.agentMs).toBeGreaterThanOrEqual(6000); // its agent had six seconds
  expect(started.timings.totalMs).toBeGreaterThan(started.timings.agentMs ?? Number.POSITIVE_INFINITY);
  const { timings } = read(fixture('environment-failed'));
  expect(timings).toMatchObject({ environmentSetupMs: expect.any(Number), agentSetupMs: null, agentMs: null, verifierMs: null });
});

const broken: [what: string, text: string, message: RegExp][] = [
  ['an empty file', '', /cut short/],
  ['half a file', fixture('solved').slice(0, 500), /cut short/],
  ['another JSON file', '{"job_name": "x"}', /not a harbor 0.25 trial result/],
];
test.each(broken)('%s is refused', (_what, text, message) => {
  expect(() => read(text)).toThrow(TrialCrashed);
  expect(() => read(text)).toThrow(message);
});
