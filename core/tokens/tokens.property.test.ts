import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyBatch, anyEpisode, tightLimits, wideLimits } from '../../test/support/any-episode.ts';
import { at } from '../lists.ts';
import { buildDatums } from './datums.ts';
import type { Datum, Episode, Span } from './span.ts';

const RUNS = { numRuns: 400 };
const lossPositions = (datum: Datum) => [...datum.mask.keys()].filter((p) => datum.mask[p] === 1);

it('every trained id was sampled, at its place in the conversation and with its own log-probability', () => {
  fc.assert(
    fc.property(anyEpisode, (episode) => {
      const { datums } = buildDatums([{ ...episode, stopReason: null }], wideLimits);
      const trained = datums.flatMap((datum) => lossPositions(datum).map((p) => ({ datum, p })));
      const usable = episode.spans.flatMap((span) =>
        [...span.sampled.keys()].filter((i) => Number.isFinite(span.logprobs[i])).map((i) => ({ span, i })),
      );
      expect(trained.length).toBe(usable.length);
      trained.forEach(({ datum, p }, k) => {
        const { span, i } = at(usable, k);
        expect(p).toBe(span.prompt.length + i);
        expect([datum.tokens[p], datum.logprobs[p]]).toEqual([span.sampled[i], span.logprobs[i]]);
        expect(datum.tokens.slice(0, p)).toEqual(Int32Array.from([...span.prompt, ...span.sampled.subarray(0, i)]));
      });
    }),
    RUNS,
  );
});

it('an episode over a limit trains nothing and is counted, every other trains as if there were no limits', () => {
  fc.assert(
    fc.property(anyBatch, (episodes) => {
      const { datums, stats } = buildDatums(episodes, tightLimits);
      const overflows = ({ stopReason, spans }: Episode) =>
        stopReason === 'context_overflow' ||
        spans.some(({ prompt, sampled }) => prompt.length + sampled.length > tightLimits.contextBudgetTokens);
      const fitting = episodes.filter((episode) => !overflows(episode));
      const alone = fitting.map((episode) => buildDatums([episode], wideLimits).datums);
      const short = alone.filter((own) => own.every(({ tokens }) => tokens.length <= tightLimits.maxDatumTokens));
      expect(datums).toEqual(short.flat());
      expect(stats.overflowDrops).toBe(episodes.length - fitting.length);
      expect(stats.overlongDrops).toBe(fitting.length - short.length);
    }),
    RUNS,
  );
});

it('merged calls, split again where each began, are the calls that were made', () => {
  fc.assert(
    fc.property(anyEpisode, (episode) => {
      const { datums } = buildDatums([{ ...episode, stopReason: null }], wideLimits);
      const conversations = conversationsOf(episode.spans).filter((calls) => calls.some(({ logprobs }) => logprobs.some(Number.isFinite)));
      const split = datums.map((datum, d) =>
        at(conversations, d).map(({ prompt, sampled }) => ({
          prompt: datum.tokens.slice(0, prompt.length),
          sampled: datum.tokens.slice(prompt.length, prompt.length + sampled.length),
        })),
      );
      expect(split).toEqual(conversations.map((calls) => calls.map(({ prompt, sampled }) => ({ prompt, sampled }))));
      expect(datums.map(({ fragment }) => fragment)).toEqual(conversations.map((_, i) => i));
      const lengths = conversations.map((calls) => Math.max(...calls.map(({ prompt, sampled }) => prompt.length + sampled.length)));
      expect(datums.map(({ tokens }) => tokens.length)).toEqual(lengths);
    }),
    RUNS,
  );
});

/** Calls in order, a new list where a prompt does not begin with everything before it. */
function conversationsOf(spans: readonly Span[]): Span[][] {
  const conversations: Span[][] = [];
  let seen: number[] | null = null;
  for (const span of spans) {
    const goesOn = seen?.every((id, i) => span.prompt[i] === id) ?? false;
    if (goesOn) conversations.at(-1)?.push(span);
    else conversations.push([span]);
    seen = [...span.prompt, ...span.sampled];
  }
  return conversations;
}
