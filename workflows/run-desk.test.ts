import { beforeEach, expect, test, vi } from 'vitest';
import type { DecisionRecord } from '../core/run/decision.ts';
import { RunDesk } from './run-desk.ts';
import { type Receiver, receivers } from './testing/receivers.ts';

// The wait itself never goes on: everything here comes in one moment, before the workflow's own code runs again.
vi.mock('@temporalio/workflow', async (original) => {
  const { sdkWithReceivers } = await import('./testing/receivers.ts');
  return sdkWithReceivers(await original());
});

let desk: RunDesk;
beforeEach(() => {
  desk = new RunDesk({ spentUsd: () => 1, ended: () => false, changed: () => {} });
  desk.open();
});

const signal = (name: string, input: object) => receivers.get(`signal ${name}`)?.take(input);
function update(name: string, input: object): DecisionRecord {
  const receiver = receivers.get(`update ${name}`) as Receiver;
  receiver.check(input);
  return receiver.take(input) as DecisionRecord;
}

test('of two signals that come in one moment the first counts; the second is recorded with the decision', () => {
  void desk.ask('cost', 'Start?', []);
  signal('declineCost', { by: 'first' });
  signal('confirm', { by: 'second' });
  expect(desk.decisions).toMatchObject([
    { by: 'first', applied: true, waitId: 'cost-1' },
    { by: 'second', applied: false, refusal: expect.stringMatching(/already decided: declineCost by first/) },
  ]);
});

test('of two updates that come in one moment the second is refused with the recorded decision', () => {
  void desk.ask('promotion', 'Promote?', []);
  update('decidePromotion', { by: 'first', approve: false });
  const second = { by: 'second', approve: true, waitId: 'promotion-1' };
  expect(() => update('decidePromotion', second)).toThrow(/promotion-1 was already decided: decidePromotion false by first/);
});

test.each([
  ['decidePromotion', { approve: true, maxUsd: 5 }, true],
  ['setBudget', { maxUsd: 5, approve: false }, 5],
  ['stop', { approve: false, maxUsd: 5 }, null],
])('the answer of %s is its own field, whatever else was sent', (name, fields, answer) => {
  void desk.ask('promotion', 'Promote?', []);
  expect(update(name, { by: 'tester', ...fields }).answer).toBe(answer);
});
