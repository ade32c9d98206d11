import { expect, test } from 'vitest';
import { heldUpIn, type Pending } from './held-up.ts';
import { heldUpText } from './view/held-up-text.ts';

const wait = { call: 'ForwardBackward', waitedMs: 754_000, queueState: 'paused_capacity', reason: 'busy' };
const beatWith = (details: string) => ({ heartbeatDetails: { payloads: [{ data: new TextEncoder().encode(details) }] } });
const failed = (message: string, attempt = 2): Pending => ({
  activityType: { name: 'runTrial' },
  attempt,
  lastFailure: { message: 'activity failed', cause: { message } },
});
const shown = (...pending: Pending[]) => heldUpIn(pending).map(heldUpText);

test('activities that get on are none of it', () => {
  expect(shown({ activityType: { name: 'trainBatch' }, attempt: 1 }, { ...beatWith('null'), activityType: { name: 'runTrial' } })).toEqual(
    [],
  );
});

test('one line per activity and cause, with the last attempt and the words at the bottom of the failure', () => {
  expect(shown(failed('402: top up'), failed('402: top up', 5), failed('no sandbox'))).toEqual([
    '2 × runTrial, attempt 5: 402: top up',
    'runTrial, attempt 2: no sandbox',
  ]);
});

test('a wait for the service shows its queue, and stands before an old failure', () => {
  const waiting = { ...beatWith(JSON.stringify(wait)), activityType: { name: 'trainBatch' }, attempt: 1 };
  expect(shown(waiting)).toEqual(['trainBatch: ForwardBackward waits for 12 min 34 s (queue: paused_capacity, busy)']);
  expect(shown({ ...failed('gone'), ...beatWith(JSON.stringify({ ...wait, queueState: null, reason: null })) })).toEqual([
    'runTrial, attempt 2: ForwardBackward waits for 12 min 34 s',
  ]);
});

test('what runs again after its worker had died gets on; what waits for its next attempt does not', () => {
  const left = {
    activityType: { name: 'keepTraining' },
    attempt: 2,
    lastFailure: { message: 'heartbeat timeout', timeoutFailureInfo: {} },
  };
  expect(shown({ ...left, state: 2 })).toEqual([]);
  expect(shown({ ...left, state: 1 })).toEqual(['keepTraining, attempt 2: heartbeat timeout']);
  expect(shown({ ...failed('Worker is shutting down and this activity did not complete in time'), state: 2 })).toEqual([]);
  expect(shown({ ...failed('402: top up'), state: 2 })).toEqual(['runTrial, attempt 2: 402: top up']);
});

test('details of another kind are no wait', () => {
  for (const details of ['', '{', '7', '{"call":"Sample"}']) expect(shown({ ...beatWith(details), attempt: 1 })).toEqual([]);
  expect(heldUpIn([{ lastFailure: {} }])).toMatchObject([{ activity: 'an activity', failure: 'it failed without a message' }]);
});
