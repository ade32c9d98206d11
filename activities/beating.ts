import { Context } from '@temporalio/activity';

/** Well under every heartbeat timeout; the SDK sends the server as many as it needs. */
const BEAT_MS = 1_000;

/**
 * Keeps telling the server that this attempt lives while `work` waits on something outside; a cancellation arrives the same way.
 * `details` go with each beat, for those who ask what the activity is doing.
 */
export async function whileBeating<T>(work: () => Promise<T>, details: () => unknown = () => undefined): Promise<T> {
  const activity = Context.current();
  const beat = setInterval(() => activity.heartbeat(details()), BEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(beat);
  }
}
