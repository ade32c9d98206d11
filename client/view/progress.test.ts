import pc from 'picocolors';
import { expect, test } from 'vitest';
import { metricsRowOf } from '../../core/measures/testing/rows.ts';
import type { Wait } from '../../core/run/phase.ts';
import { interimLabel } from '../../core/run/step-name.ts';
import type { Snapshot } from '../follow.ts';
import { evaluation, runSpend, runStatus } from '../testing/runs.ts';
import { liveLines } from './live.ts';
import { PlainProgress } from './plain-progress.ts';
import { spendText } from './spend-text.ts';
import { answersTo } from './wait-text.ts';

const plain = pc.createColors(false);
const progress = {
  label: 'step 4',
  trials: 128,
  done: 93,
  running: 8,
  executed: 92,
  passed: 40,
  infraFailed: 1,
  failing: null,
  spentUsd: 0,
  reservedUsd: 0,
};
const spend = runSpend({}, { usd: 0.05, maxUsd: 2, forecastUsd: 0.2 });
const wait = (kind: Wait['kind']): Wait => ({ id: `${kind}-1`, kind, question: 'Well?', answers: [], since: '' });
const snapshot = (known: Partial<Snapshot>): Snapshot => ({ status: null, progress: null, heldUp: [], trouble: null, ...known });

test('a running step shows phase, step bar, trials, solve rate, KL per token and spend against the cap', () => {
  const status = runStatus({ step: 3, lastRow: metricsRowOf({ step: 3 }), spend, evaluations: [evaluation('teacher', 134, 144)] });
  const shown = liveLines(snapshot({ status, progress }), plain).join('\n');
  expect(shown).toMatch(/phase +steps {2}then final/);
  expect(shown).toMatch(/steps +█{5}░{19} 3\/16/);
  expect(shown).toMatch(/trials +█{17}░{7} 93\/128 of step 4, 8 running, solved 40\/92, 1 infra-failed/);
  expect(shown).toMatch(/step 3: solved 39\.8 % \(51\/128\) · KL\/token 0\.432 nats/);
  expect(shown).toMatch(/spend +\$0\.0500 of \$2\.00 · forecast \$0\.2000/);
  expect(shown).toMatch(/held out +teacher 93\.1 % \(134\/144\)/);
});

test('a rate without executed trials is a dash', () => {
  const status = runStatus({
    step: 1,
    lastRow: metricsRowOf({ executed_trials: 0, passed_trials: 0, solve_rate: 0, reverse_kl_per_token: null }),
  });
  expect(liveLines(snapshot({ status }), plain).join('\n')).toContain('solved – (0/0) · KL/token – nats');
});

test('an evaluation that executed nothing is a dash, and one that passed nothing a rate of zero', () => {
  const seen = snapshot({ status: runStatus({ evaluations: [evaluation('teacher', 0, 0), evaluation('student-before', 0, 144)] }) });
  expect(liveLines(seen, plain).join('\n')).toContain('teacher – (0/0) · student before 0.0 % (0/144)');
  expect(new PlainProgress(0).lines(seen, 0)).toContain('teacher on held-out tasks: – (0/0 over 48 tasks)');
});

test.each([
  [runSpend({ teacher_sample: [1, null] }, { forecastUsd: 0 }), 'unknown, no cap · not counted: teacher_sample (no price)'],
  [
    runSpend({ teacher_sample: [1, null] }, { maxUsd: 2, forecastUsd: 0 }),
    'unknown of $2.00 · not seen by the cap: teacher_sample (no price)',
  ],
  [runSpend({ teacher_sample: [1, 0] }, { forecastUsd: 0 }), '$0.0000, no cap · forecast $0.0000'],
  [runSpend({}), '$0.0000, no cap'],
])('spend without any price is unknown, never zero: %#', (spend, told) => expect(spendText(spend)).toBe(told));

test.each([
  ['cost', ['stillroom confirm r', 'stillroom decline r']],
  ['budget', ['stillroom budget r USD', 'stillroom stop r']],
  ['teacher', ['stillroom continue r', 'stillroom stop r']],
  ['promotion', ['stillroom approve r', 'stillroom reject r']],
  ['pause', ['stillroom resume r', 'stillroom stop r']],
] as const)('a wait for %s names the commands that answer it', (kind, commands) => {
  expect(answersTo(wait(kind), 'r')).toEqual(commands);
  const shown = liveLines(snapshot({ status: runStatus({ runId: 'r', waitingFor: wait(kind) }) }), plain).join('\n');
  expect(shown).toContain(`answer with: ${commands.join('   or: ')}`);
});

test('plain progress speaks once of each event, and after 20 s of silence gives a sign of life', () => {
  const told = new PlainProgress(0);
  const first = runStatus({ phase: 'baselines', evaluations: [evaluation('teacher', 134, 144)], notices: ['careful'] });
  expect(told.lines(snapshot({ status: first }), 0)).toEqual([
    'teacher on held-out tasks: 93.1 % (134/144 over 48 tasks)',
    'note: careful',
    'phase: baselines',
  ]);
  expect(told.lines(snapshot({ status: first }), 1_000)).toEqual([]);
  expect(told.lines(snapshot({ status: first, progress }), 20_000)).toEqual(['step 4: 93/128 trials done, 8 running']);
  expect(told.lines(snapshot({ status: first, progress }), 39_999)).toEqual([]);
  const stepped = { ...first, phase: 'steps', step: 1, lastRow: metricsRowOf({ step: 1 }), waitingFor: wait('budget') } as const;
  expect(told.lines(snapshot({ status: stepped }), 40_000)).toEqual([
    'step 1/16: solved 39.8 % (51/128) · KL/token 0.432 nats · spend $0.0000, no cap',
    'phase: steps',
    'waits for a person: Well?\n  answer with: stillroom budget run-1 USD   or: stillroom stop run-1',
  ]);
  expect(told.lines(snapshot({ status: stepped, trouble: 'server away' }), 41_000)).toEqual(['server away']);
  expect(told.lines(snapshot({ status: stepped, trouble: 'server away' }), 42_000)).toEqual([]);
});

test('interim evaluations are told once each, as what they are', () => {
  const told = new PlainProgress(0);
  const of = (...steps: number[]) =>
    snapshot({ status: runStatus({ interim: steps.map((step) => evaluation(interimLabel(step), 6, 12, 12)) }) });
  told.lines(snapshot({ status: runStatus({}) }), 0);
  expect(told.lines(of(2), 0)).toEqual(['student at step 2 on training tasks: 50.0 % (6/12 over 12 tasks)']);
  expect(told.lines(of(2), 0)).toEqual([]);
  expect(told.lines(of(4, 6), 0)).toHaveLength(2); // the oldest are forgotten
  expect(liveLines(of(2, 4), plain).join('\n')).toMatch(/interim +student at step 4 50\.0 % \(6\/12\) on training tasks/);
});

test('plain progress stays silent while a person is waited for', () => {
  const told = new PlainProgress(0);
  const waiting = snapshot({ status: runStatus({ waitingFor: wait('cost') }) });
  expect(told.lines(waiting, 0)).toHaveLength(2);
  expect(told.lines(waiting, 3_600_000)).toEqual([]);
});

test('a warm-up has its own bar, and is not announced where none is planned', () => {
  const shown = (warmup: { updates: number; steps: number; lossNatsPerToken: number | null } | null) =>
    liveLines(snapshot({ status: runStatus({ phase: 'baselines', warmup }) }), plain).join('\n');
  expect(shown({ updates: 0, steps: 8, lossNatsPerToken: null })).toMatch(/phase +baselines {2}then warmup/);
  expect(shown({ updates: 2, steps: 8, lossNatsPerToken: 0.1234 })).toMatch(/warm-up +█{6}░{18} 2\/8 updates · loss 0\.123 nats\/token/);
  expect(shown(null)).toMatch(/phase +baselines {2}then steps/);
  expect(shown(null)).not.toMatch(/warm/);
});

test('what holds a run up is shown as long as it does, and told once where lines are printed', () => {
  const heldUp = [{ activity: 'trainBatch', count: 1, attempt: 3, failure: '402: top up', wait: null }];
  const status = runStatus({});
  expect(liveLines(snapshot({ status, heldUp }), plain).join('\n')).toMatch(/held up +trainBatch, attempt 3: 402: top up/);
  const lines = new PlainProgress(0);
  lines.lines(snapshot({ status }), 0);
  expect(lines.lines(snapshot({ status, heldUp }), 1)).toEqual(['held up: trainBatch, attempt 3: 402: top up']);
  const later = heldUp.map((one) => ({ ...one, attempt: 4 }));
  expect(lines.lines(snapshot({ status, heldUp: later }), 2)).toEqual([]);
  expect(lines.lines(snapshot({ status }), 3)).toEqual([]);
  expect(lines.lines(snapshot({ status, heldUp }), 4)).toHaveLength(1);
});
