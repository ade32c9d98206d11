import { addUsage, type LostCall, NO_USAGE, NOTHING_SENT, type Usage } from '../measures/usage.ts';
import { type Generation, type JournalCall, standingOf } from './journal.ts';

/**
 * What the calls of these generations took. One that the service has taken counts once, whoever waited for its result and whatever
 * became of its model. One of which nobody knows whether it was taken is lost: it is paid for as if it were.
 */
export function usageOf(generations: readonly Generation[]): Usage {
  const calls = generations.flatMap((generation) => standingOf(generation).calls).filter(({ tokens }) => tokens > 0);
  return addUsage(NO_USAGE, ...calls.map(usageOfCall));
}

function usageOfCall({ of, tokens, sent }: JournalCall, callIndex: number): Usage {
  const meters = { student_train: tokens };
  if (sent) return { meters, sent: { ...NOTHING_SENT, trainedTokens: tokens }, lost: [] };
  const lost: LostCall = { kind: 'train', of, callIndex, promptTokens: tokens, sampledTokens: 0 };
  return { meters, sent: NOTHING_SENT, lost: [lost] };
}
