import { expect, test } from 'vitest';
import type { LoggedCall } from '../../trainer/service/call-log.ts';
import { lineageFaults, lineageOf, UnknownLineage } from './lineage.ts';

type Short = readonly [kind: LoggedCall['kind'], detail?: string, failed?: string];

/** Calls of one model, numbered from 0. The detail is a batch's digest, or a checkpoint's path; a batch has ten tokens. */
const model = (owner: string, ...calls: readonly Short[]): LoggedCall[] =>
  calls.map(([kind, detail = '', failed], seq) => ({
    at: '2026-01-01T00:00:00.000Z',
    kind,
    request: `${owner}:${seq}`,
    session: 's',
    owner,
    seq,
    weights: kind === 'save' || kind === 'load' ? detail : null,
    digest: kind === 'forward_backward' ? detail : '',
    prompt: 0,
    sampled: 0,
    scored: 0,
    trained: kind === 'forward_backward' ? 10 : 0,
    failed: failed ?? null,
  }));
const batch = (digest: string): Short[] => [['forward_backward', digest], ['optim_step']];
const steps = (count: number) => Array.from({ length: count }, (_, i) => ({ step: i + 1, updates: 1, tokens: 10 }));

const first = model('a', ['create'], ...batch('b1'), ['save', 'a/1'], ...batch('b2'), ...batch('b3'));
const rebuilt = model('b', ['load', 'a/1'], ...batch('b2'), ...batch('b3'), ['save', 'b/3']);

test('a model that was loaded goes on where its checkpoint was saved', () => {
  const lineage = lineageOf([...first, ...rebuilt], 'b/3');
  expect(lineage.models).toEqual(['a', 'b']);
  expect(lineage.updates.map(({ gradients }) => gradients)).toEqual([['b1'], ['b2'], ['b3']]);
  expect(lineageFaults(lineage, steps(3))).toEqual([]);
});

test('an update that was applied twice, left out or put elsewhere is found', () => {
  const twice = model('b', ['load', 'a/1'], ...batch('b2'), ...batch('b2'), ['save', 'b/3']);
  expect(lineageFaults(lineageOf([...first, ...twice], 'b/3'), steps(3))).toEqual(['batch b2 is in the lineage twice (b:4)']);
  const short = model('b', ['load', 'a/1'], ...batch('b3'), ['save', 'b/3']);
  expect(lineageFaults(lineageOf([...first, ...short], 'b/3'), steps(3))).toEqual(['2 updates in the lineage, 3 in the rows']);
  const [one, other] = [steps(3), lineageOf([...first, ...rebuilt], 'b/3')];
  expect(lineageFaults(other, [...one.slice(0, 2), { step: 3, updates: 1, tokens: 11 }])).toEqual([
    'step 3: 10 tokens in the lineage, 11 in its row',
  ]);
});

test('a failed call changed nothing, and a load forgets what came before it', () => {
  const calls = model(
    'a',
    ['create'],
    ...batch('x'),
    ['save', 'a/1'],
    ...batch('y'),
    ['load', 'a/1'],
    ['forward_backward', 'z', 'bad'],
    ...batch('w'),
    ['save', 'a/2'],
  );
  expect(lineageOf(calls, 'a/2').updates.map(({ gradients }) => gradients)).toEqual([['x'], ['w']]);
});

test('a step without a gradient is found', () => {
  const calls = model('a', ['create'], ['optim_step'], ['save', 'a/1']);
  expect(lineageFaults(lineageOf(calls, 'a/1'), [{ step: 1, updates: 1, tokens: 0 }])).toEqual(['a:1 stepped without a gradient']);
});

test('a checkpoint that nobody saved has no lineage', () => {
  expect(() => lineageOf(first, 'b/3')).toThrow(UnknownLineage);
});
