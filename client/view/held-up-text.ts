import type { HeldUp } from '../held-up.ts';
import { duration } from './format.ts';

/** `3 × runTrial, attempt 2: the service is busy …`, `trainBatch: ForwardBackward waits for 12 min (queue: paused_capacity, busy)` */
export function heldUpText({ activity, count, attempt, failure, wait }: HeldUp): string {
  const who = `${count > 1 ? `${count} × ` : ''}${activity}${attempt > 1 ? `, attempt ${attempt}` : ''}`;
  if (wait === null) return `${who}: ${failure}`;
  const queue = wait.queueState === null ? [] : [`queue: ${wait.queueState}`];
  const said = [...queue, ...(wait.reason === null ? [] : [wait.reason])].join(', ');
  return `${who}: ${wait.call} waits for ${duration(wait.waitedMs)}${said === '' ? '' : ` (${said})`}`;
}
