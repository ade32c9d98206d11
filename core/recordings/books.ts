import { rolloutMeters, splitCached } from '../measures/billing.ts';
import { addMeters, type MeterTokens } from '../measures/meters.ts';
import { type LostCall, NOTHING_SENT, type SentTokens, type Usage } from '../measures/usage.ts';
import { type AnsweredCall, isAnswered, type PaidCall } from './paid-call.ts';

/** Tokens of these calls as the service counted them. */
export function sentIn(calls: readonly PaidCall[]): SentTokens {
  const answered = calls.filter(isAnswered);
  const prompts = (kind: PaidCall['kind']) =>
    answered.filter((call) => call.kind === kind).reduce((sum, { promptTokens }) => sum + promptTokens, 0);
  const sampledTokens = answered.reduce((sum, { outcome }) => sum + outcome.sampledTokens, 0);
  return { ...NOTHING_SENT, promptTokens: prompts('sample'), scoredTokens: prompts('score'), sampledTokens };
}

/**
 * Calls that were sent and have no recorded answer, and submissions that the service lost. A call that the service refused, or of which it
 * keeps the answer back until it is paid, is none of them.
 */
export function lostIn(calls: readonly PaidCall[], of: string): LostCall[] {
  return calls.flatMap((call) => {
    const { kind, index: callIndex, promptTokens, mostSampledTokens: sampledTokens, outcome } = call;
    const times = isAnswered(call) ? call.outcome.resubmissions : outcome === null ? 1 : 0;
    return Array<LostCall>(times).fill({ kind, of, callIndex, promptTokens, sampledTokens });
  });
}

/** What lost calls are booked at: all they could have cost, by whose calls they were. */
export function lostMeters(calls: readonly PaidCall[]): MeterTokens {
  return addMeters(
    ...calls.flatMap((call) => lostIn([call], '').map(({ promptTokens, sampledTokens }) => fullPrice(call, promptTokens, sampledTokens))),
  );
}

/** Meters of answered calls that are no part of a conversation: each at its own full price. */
export function answeredMeters(calls: readonly AnsweredCall[]): MeterTokens {
  return addMeters(...calls.map((call) => fullPrice(call, call.promptTokens, call.outcome.sampledTokens, call.outcome.cachedTokens)));
}

/** Everything that these calls took, when each of them stands for itself. */
export function usageOf(calls: readonly PaidCall[], of: string): Usage {
  return { meters: addMeters(answeredMeters(calls.filter(isAnswered)), lostMeters(calls)), sent: sentIn(calls), lost: lostIn(calls, of) };
}

/** Scoring reads every token and is charged for that; what it samples besides is of no use, and not metered. */
function fullPrice({ kind, who }: PaidCall, promptTokens: number, sampledTokens: number, cachedTokens = 0): MeterTokens {
  if (kind === 'sample') return rolloutMeters({ uniqueTokens: promptTokens + sampledTokens, cachedTokens: 0, sampledTokens }, who);
  const { uncached, cached } = splitCached(promptTokens, cachedTokens);
  return { [`${who}_prefill`]: uncached, [`${who}_cached_prefill`]: cached };
}
