import { Context } from '@temporalio/activity';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';

/** Well under every heartbeat timeout; the SDK sends the server as many as it needs. */
const BEAT_MS = 1_000;

/** Activities that beat by themselves just now. */
const beating = new WeakSet<Context>();

/**
 * Keeps telling the server that this attempt lives while `work` waits on something outside; a cancellation arrives the same way.
 * `details` go with each beat, for those who ask what the activity is doing.
 */
export async function whileBeating<T>(work: () => Promise<T>, details: () => unknown = () => undefined): Promise<T> {
  const activity = Context.current();
  const beat = setInterval(() => activity.heartbeat(details()), BEAT_MS);
  beating.add(activity);
  try {
    return await work();
  } finally {
    beating.delete(activity);
    clearInterval(beat);
  }
}

/**
 * Lets every activity of a worker beat, also one that is too short to think of it: the server then knows within its heartbeat timeout that
 * the worker died, instead of waiting for the longest time that the activity may take.
 */
export const beatAlways: ActivityInterceptorsFactory = (activity) => ({
  inbound: {
    async execute(input, next) {
      const beat = setInterval(() => {
        if (!beating.has(activity)) activity.heartbeat();
      }, BEAT_MS);
      try {
        return await next(input);
      } finally {
        clearInterval(beat);
      }
    },
  },
});
