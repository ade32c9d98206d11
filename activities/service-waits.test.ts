import { expect, test } from 'vitest';
import { ServiceWaits } from './service-waits.ts';

const BUSY = { queueState: 'paused_capacity', reason: 'busy', status: 408, nextTryMs: 0 } as const;
const wait = (call: string, waitedMs: number) => ({ ...BUSY, call, waitedMs });

test('tells the longest wait that goes on, and neither short ones nor those that ended', () => {
  let nowMs = 0;
  const waits = new ServiceWaits(() => nowMs);
  expect(waits.longest()).toBeNull();
  waits.note(wait('Sample', 900));
  expect(waits.longest()).toBeNull();
  waits.note(wait('ForwardBackward', 600_000));
  waits.note(wait('Sample', 20_000));
  expect(waits.longest()).toEqual(wait('ForwardBackward', 600_000));
  nowMs = 45_000;
  waits.note(wait('Sample', 65_000));
  nowMs = 61_000;
  expect(waits.longest()).toEqual(wait('Sample', 65_000));
});
