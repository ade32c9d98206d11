import type { RunConfig } from '../config/schema.ts';
import { at } from '../lists.ts';
import { isUsable } from './logprob.ts';
import { commonLength } from './prefix.ts';
import type { Datum, Episode, Span } from './span.ts';
import { lengthOf, lossStretches } from './stretches.ts';
import { TokenError } from './token-error.ts';

/** The stop reason of an episode whose agent ran out of context: it is dropped whole, with or without spans. */
export const CONTEXT_OVERFLOW = 'context_overflow';

export type DatumLimits = {
  /** Longest prompt + sample of one call, in tokens. One call above it drops its episode. */
  readonly contextBudgetTokens: number;
  /** Longest merged training sequence, in tokens. One datum above it drops its episode, short fragments included. */
  readonly maxDatumTokens: number;
};

/** The limits that a run's config sets. */
export function datumLimits({ rollout, train }: Pick<RunConfig, 'rollout' | 'train'>): DatumLimits {
  return { contextBudgetTokens: rollout.context_budget_tokens, maxDatumTokens: train.max_datum_tokens };
}

export type DatumStats = {
  readonly datums: number;
  /** Datums beyond the first of their episode. */
  readonly fragments: number;
  /** fragments / datums; 0 when there is no datum. */
  readonly fragmentationRate: number;
  /** Episodes dropped because a call passed the context budget or the agent stopped on overflow. */
  readonly overflowDrops: number;
  /** Episodes dropped because a merged datum passed `maxDatumTokens`. */
  readonly overlongDrops: number;
  readonly lossTokens: number;
  readonly contextTokens: number;
  /** Sampled tokens that carry no loss because their log-probability was unusable; they are among `contextTokens`. */
  readonly maskedTokens: number;
};

/** Calls `from..to` (exclusive) whose prompts extend one another: they merge into one sequence. */
export type Run = { readonly from: number; readonly to: number; readonly length: number };

/**
 * Merges the calls of each episode, in the order of their indices, into training sequences. A prompt that starts with everything seen so
 * far extends the sequence; any other prompt opens a fragment. Sequences without a loss token are left out and take no fragment number.
 * Time is linear in the tokens of the spans, and in those of the datums alone where prompts share memory, as `decodeEpisode` makes them;
 * the result holds one typed array per column.
 * @throws TokenError `span_length_mismatch` when a span has more or fewer log-probabilities than sampled tokens.
 */
export function buildDatums(episodes: readonly Episode[], limits: DatumLimits): { datums: Datum[]; stats: DatumStats } {
  const datums: Datum[] = [];
  let fragments = 0;
  let overflowDrops = 0;
  let overlongDrops = 0;
  let sampledTokens = 0;
  for (const given of episodes) {
    const episode = { ...given, spans: inCallOrder(given.spans) };
    episode.spans.forEach((span) => {
      const problem = spanProblem(span);
      if (problem) throw new TokenError('span_length_mismatch', `trial ${episode.trial}, call ${span.callIndex}`, problem);
    });
    if (overflows(episode, limits.contextBudgetTokens)) {
      overflowDrops++;
      continue;
    }
    const runs = prefixRuns(episode.spans).filter(({ from, to }) => episode.spans.slice(from, to).some(hasLossToken));
    if (runs.some((run) => run.length > limits.maxDatumTokens)) {
      overlongDrops++;
      continue;
    }
    runs.forEach((run, fragment) => {
      datums.push(mergeRun(episode, run, fragment));
      for (let s = run.from; s < run.to; s++) sampledTokens += at(episode.spans, s).sampled.length;
    });
    fragments += Math.max(0, runs.length - 1);
  }
  const { lossTokens, contextTokens } = countTokens(datums);
  const fragmentationRate = datums.length === 0 ? 0 : fragments / datums.length;
  const maskedTokens = sampledTokens - lossTokens;
  return {
    datums,
    stats: { datums: datums.length, fragments, fragmentationRate, overflowDrops, overlongDrops, lossTokens, contextTokens, maskedTokens },
  };
}

/** Calls as they were made; those of one index in the order given. */
export function inCallOrder<S extends Pick<Span, 'callIndex'>>(spans: readonly S[]): S[] {
  return spans.toSorted((a, b) => a.callIndex - b.callIndex);
}

/** What makes a span unacceptable, or null. A call that sampled nothing is fine. */
export function spanProblem(span: Pick<Span, 'sampled' | 'logprobs'>): string | null {
  if (span.sampled.length === span.logprobs.length) return null;
  return `${span.sampled.length} sampled tokens but ${span.logprobs.length} log-probabilities; each sampled token needs exactly one`;
}

/** Loss and context tokens of a list of datums. */
export function countTokens(datums: readonly Datum[]): { lossTokens: number; contextTokens: number } {
  let lossTokens = 0;
  let tokens = 0;
  for (const { mask } of datums) {
    tokens += mask.length;
    lossTokens += lengthOf(lossStretches(mask));
  }
  return { lossTokens, contextTokens: tokens - lossTokens };
}

function overflows(episode: Episode, contextBudgetTokens: number): boolean {
  return (
    episode.stopReason === CONTEXT_OVERFLOW || episode.spans.some((span) => span.prompt.length + span.sampled.length > contextBudgetTokens)
  );
}

/** Splits calls, in order, where a prompt does not extend what came before. Everything seen before a call is the previous prompt and what was sampled
 * from it, so one look back decides. */
export function prefixRuns(spans: readonly Pick<Span, 'prompt' | 'sampled'>[]): Run[] {
  const runs: Run[] = [];
  let from = 0;
  spans.forEach((span, i) => {
    const next = spans[i + 1];
    if (next && extendsSpan(next.prompt, span)) return;
    runs.push({ from, to: i + 1, length: span.prompt.length + span.sampled.length });
    from = i + 1;
  });
  return runs;
}

function extendsSpan(prompt: Int32Array, before: Pick<Span, 'prompt' | 'sampled'>): boolean {
  const context = before.prompt;
  const sampled = before.sampled;
  if (prompt.length < context.length + sampled.length) return false;
  return commonLength(prompt, context.length, sampled) === sampled.length && commonLength(prompt, 0, context) === context.length;
}

function hasLossToken({ logprobs }: Span): boolean {
  for (let i = 0; i < logprobs.length; i++) if (isUsable(logprobs[i] as number)) return true;
  return false;
}

/** The last call's prompt already holds all earlier calls; they only mark where their samples lie in it. */
function mergeRun(episode: Episode, run: Run, fragment: number): Datum {
  const last = at(episode.spans, run.to - 1);
  const tokens = new Int32Array(run.length);
  tokens.set(last.prompt);
  tokens.set(last.sampled, last.prompt.length);
  const mask = new Uint8Array(run.length);
  const logprobs = new Float64Array(run.length);
  for (let s = run.from; s < run.to; s++) {
    const span = at(episode.spans, s);
    const start = span.prompt.length;
    const end = start + span.logprobs.length;
    logprobs.set(span.logprobs, start);
    mask.fill(1, start, end);
    maskUnusable(mask, logprobs, start, end);
  }
  return { trial: episode.trial, fragment, tokens, mask, logprobs };
}

function maskUnusable(mask: Uint8Array, logprobs: Float64Array, from: number, to: number): void {
  for (let p = from; p < to; p++) {
    if (isUsable(logprobs[p] as number)) continue;
    mask[p] = 0;
    logprobs[p] = 0;
  }
}
