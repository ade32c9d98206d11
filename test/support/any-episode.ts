import fc from 'fast-check';
import type { TrialId } from '../../core/ids.ts';
import type { DatumLimits } from '../../core/tokens/datums.ts';
import type { Episode, Span } from '../../core/tokens/span.ts';

/** Small enough that some of the episodes below do not fit. */
export const tightLimits: DatumLimits = { contextBudgetTokens: 40, maxDatumTokens: 32 };
/** Large enough for all of them. */
export const wideLimits: DatumLimits = { contextBudgetTokens: 4096, maxDatumTokens: 4096 };

/** Few ids, so that prompts often agree by chance. */
const token = fc.nat(3);
const logprob = fc.oneof(
  { weight: 8, arbitrary: fc.double({ min: -9, max: 0, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY) },
);
const turn = fc.record({
  /** How the next prompt comes about: from all that was there, from a history that was shortened or altered, or from nothing. */
  history: fc.oneof(
    { weight: 6, arbitrary: fc.constant('kept' as const) },
    { weight: 1, arbitrary: fc.constantFrom('cut', 'altered', 'forgotten') },
  ),
  at: fc.nat(20),
  observation: fc.array(token, { maxLength: 5 }),
  sampled: fc.array(fc.tuple(token, logprob), { maxLength: 5 }),
  stop: fc.constantFrom('stop' as const, 'length' as const),
});
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

const sampler = fc.constantFrom('step-0000', 'step-0003', 'stillroom/tiny-student');
const stopReason = fc.constantFrom(null, 'submitted', 'max_turns', 'context_overflow');

/**
 * An episode as an agent may leave it: prompts that extend one another, histories that were rewritten, calls that sampled nothing, tokens
 * without a usable log-probability, prompts of no token at all, and now and then a conversation that outgrew its budget.
 */
export const anyEpisode: fc.Arbitrary<Episode> = fc
  .tuple(fc.array(turn, { maxLength: 7 }), sampler, stopReason)
  .map(([turns, from, stopped]) => ({ trial: 'trial-0' as TrialId, spans: spansOf(turns, from), stopReason: stopped }));

/** Episodes of different trials. */
export const anyBatch: fc.Arbitrary<Episode[]> = fc
  .array(anyEpisode, { maxLength: 6 })
  .map((episodes) => episodes.map((episode, i) => ({ ...episode, trial: `trial-${i}` as TrialId })));

function spansOf(turns: readonly Turn[], from: string): Span[] {
  const spans: Span[] = [];
  let seen: number[] = [];
  turns.forEach((one, callIndex) => {
    const prompt = [...historyAfter(seen, one), ...one.observation];
    const sampled = Int32Array.from(one.sampled, ([id]) => id);
    const logprobs = Float64Array.from(one.sampled, ([, value]) => value);
    spans.push({ callIndex, prompt: Int32Array.from(prompt), sampled, logprobs, stop: one.stop, sampler: from });
    seen = [...prompt, ...sampled];
  });
  return spans;
}

function historyAfter(seen: readonly number[], { history, at }: Turn): number[] {
  if (history === 'forgotten') return [];
  if (history === 'cut') return seen.slice(at);
  if (history === 'altered') return seen.map((id, i) => (i === at % seen.length ? id + 1 : id));
  return [...seen];
}
