import { expect, test } from 'vitest';
import { NOTHING_SENT, type Usage } from '../../core/measures/usage.ts';
import type { LoggedCall } from '../../trainer/service/call-log.ts';
import type { ChaosRun } from './chaos-run.ts';
import { checksOf } from './checks.ts';

const AT = '2026-01-01T00:00:10.000Z';
const STATE = 'tinker://m/weights/final';
const SAMPLER = 'tinker://m/sampler_weights/final';

const call = (request: string, more: Partial<LoggedCall>): LoggedCall => ({
  at: AT,
  kind: 'sample',
  request,
  session: 's',
  owner: 'm',
  seq: 0,
  weights: null,
  digest: '',
  prompt: 0,
  sampled: 0,
  scored: 0,
  trained: 0,
  failed: null,
  ...more,
});

const CALLS = [
  call('ping', { at: '2026-01-01T00:00:00.000Z', prompt: 1, sampled: 1 }),
  call('m:create', { kind: 'create' }),
  call('t1', { owner: 'sampler', digest: 'p', prompt: 20, sampled: 6 }),
  call('t1 lost', { owner: 'sampler', digest: 'p', prompt: 20, sampled: 6 }),
  call('t1 score', { owner: 'sampler', kind: 'score', digest: 'd', scored: 26 }),
  call('m:1', { kind: 'forward_backward', seq: 1, digest: 'b', trained: 26 }),
  call('m:2', { kind: 'optim_step', seq: 2 }),
  call('m:3', { kind: 'save', seq: 3, weights: STATE }),
  call('m:4', { kind: 'save', seq: 4, weights: SAMPLER }),
];
const USAGE: Usage = {
  meters: { student_sample: 35, student_train: 26 },
  sent: { promptTokens: 21, sampledTokens: 7, scoredTokens: 26, trainedTokens: 26 },
  lost: [{ kind: 'sample', of: 't1', callIndex: 0, promptTokens: 20, sampledTokens: 28 }],
};
const SUMMARY = {
  trialId: 't1',
  meters: { student_sample: 34 },
  sent: { ...NOTHING_SENT, promptTokens: 20, sampledTokens: 6 },
  lost: USAGE.lost,
};
const SCORE = {
  trialId: 't1',
  meters: { teacher_prefill: 6, teacher_cached_prefill: 20 },
  sent: { ...NOTHING_SENT, scoredTokens: 26 },
  lost: [],
};
const TRIAL = {
  workflowId: 'run.step-0001',
  type: 'runTrial',
  input: { trialId: 't1' },
  attempts: 2,
  startedAtMs: 1,
  completedAtMs: 2,
  result: {},
};
const ROW = { step: 1, optimizer_updates: 1, loss_tokens: 6, context_tokens: 20 };
const KILL = {
  number: 1,
  target: 'worker',
  signal: 'SIGKILL',
  moment: 'optim_step',
  delayMs: 0,
  pid: 1,
  atMs: 1,
  place: '',
  met: true,
  recoveredMs: 9,
} as const;

/** A run of one step with one trial whose worker was killed once. */
const GOOD = {
  runId: 'run',
  result: { outcome: 'accepted', weights: { statePath: STATE, samplerPath: SAMPLER } },
  failure: null,
  steps: 1,
  kills: [KILL],
  planned: 1,
  calls: CALLS,
  history: {
    activities: [TRIAL],
    children: [{ workflowId: 'run.step-0001', startedAtMs: Date.parse('2026-01-01T00:00:05.000Z') }],
  },
  books: {
    usage: USAGE,
    sent: USAGE.sent,
    lost: USAGE.lost,
    trials: [{ summary: SUMMARY, attempts: 2, completedAtMs: 2 }],
    scores: [SCORE],
    kept: [
      { kind: 'sample', of: 't1', digest: 'p', sampled: 6 },
      { kind: 'score', of: 't1', digest: 'd', sampled: 0 },
    ],
    unheard: [],
    firstCalls: [],
  },
  rows: [JSON.stringify(ROW)],
  leftovers: { processes: [], folders: [], seen: { processes: 9, sandboxes: 1, folders: 2 } },
  exitCode: 0,
  wallMs: 1,
} as unknown as ChaosRun;

const failed = (run: ChaosRun) => checksOf(run).flatMap(({ check, ok }) => (ok ? [] : [check]));
const withBooks = (more: object): ChaosRun => ({ ...GOOD, books: { ...GOOD.books, ...more } });
const withCalls = (...more: LoggedCall[]): ChaosRun => ({ ...GOOD, calls: [...CALLS, ...more] });

test('a run that kept every promise', () => {
  expect(failed(GOOD)).toEqual([]);
});

test.each<[string, ChaosRun, string[]]>([
  ['it was not accepted', { ...GOOD, result: { ...GOOD.result, outcome: 'rejected' } as never }, ['run finished']],
  ['a kill is missing', { ...GOOD, planned: 2 }, ['kills that came']],
  ['no kill met an update', { ...GOOD, kills: [{ ...KILL, met: false }] }, ['kills at their moment']],
  [
    'a row came twice',
    { ...GOOD, rows: [JSON.stringify(ROW), JSON.stringify(ROW)] },
    ['each update once in the final weights', 'rows in metrics.jsonl'],
  ],
  [
    'an update was applied twice',
    {
      ...GOOD,
      calls: CALLS.map((each) => (each.request === 'm:4' ? { ...each, seq: 9 } : each)).concat(call('m:5', { kind: 'optim_step', seq: 5 })),
    },
    ['each update once in the final weights'],
  ],
  [
    'a finished trial was run again',
    { ...GOOD, history: { ...GOOD.history, activities: [TRIAL, TRIAL] as never } },
    ['finished trials that were run again'],
  ],
  [
    'a call is on nobody’s list',
    withCalls(call('t2', { owner: 'sampler', digest: 'x', prompt: 5, sampled: 1 })),
    ['prompt tokens: trainer = booked + lost', 'sampled tokens: trainer = booked + lost', 'calls that only the trainer knows'],
  ],
  [
    'an answer was made up',
    withBooks({ kept: [...GOOD.books.kept, { kind: 'score', of: 't1', digest: 'y', sampled: 0 }] }),
    ['answers that only the run knows'],
  ],
  [
    'a trial that was never hit lost a call',
    withBooks({ trials: [{ summary: SUMMARY, attempts: 1, completedAtMs: 2 }] }),
    ['lost calls a killed trial'],
  ],
  [
    'a lost call is booked at nothing',
    withBooks({ trials: [{ summary: { ...SUMMARY, meters: { student_sample: 6 } }, attempts: 2, completedAtMs: 2 }] }),
    ['lost calls are booked at their reservation'],
  ],
  [
    'a score is booked twice',
    withBooks({ scores: [{ ...SCORE, meters: { teacher_prefill: 52 } }] }),
    ['lost calls are booked at their reservation'],
  ],
  [
    'training is not booked',
    withBooks({ usage: { ...USAGE, meters: { student_sample: 34 } } }),
    ['lost calls are booked at their reservation'],
  ],
  [
    'a sandbox is left',
    { ...GOOD, leftovers: { ...GOOD.leftovers, processes: [{ pid: 7, parentPid: 1, born: '1', command: 'bwrap' }] } },
    ['processes and sandboxes left'],
  ],
  ['a folder is left', { ...GOOD, leftovers: { ...GOOD.leftovers, folders: ['/x'] } }, ['scratch folders left']],
  ['`up` did not end well', { ...GOOD, exitCode: 1 }, ['exit code of `stillroom up`']],
])('found: %s', (_, run, expected) => {
  expect(failed(run)).toEqual(expected);
});

test('found: what preflight asked is not booked', () => {
  const sent = { ...USAGE.sent, promptTokens: 20, sampledTokens: 6 };
  expect(failed(withBooks({ sent }))).toEqual(['prompt tokens: trainer = booked + lost', 'sampled tokens: trainer = booked + lost']);
});
