import { Context } from '@temporalio/activity';

/** What an activity does that has nothing to do: rejects when it is cancelled. */
export async function untilCancelled(): Promise<never> {
  const activity = Context.current();
  const beat = setInterval(() => activity.heartbeat(), 100);
  return activity.cancelled.finally(() => clearInterval(beat));
}
