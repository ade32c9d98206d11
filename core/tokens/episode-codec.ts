import type { TrialId } from '../ids.ts';
import { at } from '../lists.ts';
import { packColumns, unpackColumns } from './columns.ts';
import { commonLength } from './prefix.ts';
import type { Episode, Span } from './span.ts';
import { TokenError } from './token-error.ts';

const MAGIC = 'SREP';
const VERSION = 1;

type EpisodeMeta = {
  readonly trial: string;
  readonly stopReason: string | null;
  readonly callIndex: readonly number[];
  readonly stop: readonly Span['stop'][];
  readonly sampler: readonly string[];
};

/**
 * Bytes of an episode for the blob store. A prompt is stored as the length of what it shares with the call before (prompt and sample) and the rest, so
 * that the bytes grow with the new tokens of a conversation, not with the square of its turns.
 */
export function encodeEpisode(episode: Episode): Uint8Array {
  const { spans } = episode;
  const meta: EpisodeMeta = {
    trial: episode.trial,
    stopReason: episode.stopReason,
    callIndex: spans.map((span) => span.callIndex),
    stop: spans.map((span) => span.stop),
    sampler: spans.map((span) => span.sampler),
  };
  const shared = spans.map((span, i) => sharedLength(span.prompt, spans[i - 1]));
  const rest = spans.map((span, i) => span.prompt.subarray(shared[i]));
  return packColumns(MAGIC, VERSION, meta, [
    Int32Array.from(shared),
    Int32Array.from(rest, (tokens) => tokens.length),
    Int32Array.from(spans, (span) => span.sampled.length),
    concatInt32(rest),
    concatInt32(spans.map((span) => span.sampled)),
    concatFloat64(spans.map((span) => span.logprobs)),
  ]);
}

/**
 * Reads what `encodeEpisode` wrote. Calls that extend one another are views of one array, so that a conversation takes memory for its tokens
 * and not for the square of its turns: copy before changing. @throws TokenError `corrupt_bytes`.
 */
export function decodeEpisode(bytes: Uint8Array): Episode {
  const { meta, columns } = unpackColumns<EpisodeMeta>(MAGIC, VERSION, 'episode', bytes);
  const [shared, restLengths, sampledLengths, rest, sampled, logprobs] = columns as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Float64Array,
  ];
  // Where each call ends in the conversation, and where the last of those ends that extend it: so much memory they share.
  const ends = shared.map((sharedTokens, i) => sharedTokens + (restLengths[i] as number) + (sampledLengths[i] as number));
  const needs = ends.slice();
  for (let i = ends.length - 2; i >= 0; i--) if (shared[i + 1] === ends[i]) needs[i] = needs[i + 1] as number;
  const spans: Span[] = [];
  let memory = new Int32Array(0);
  let restAt = 0;
  let sampledAt = 0;
  shared.forEach((sharedTokens, i) => {
    const restTo = restAt + (restLengths[i] as number);
    const sampledTo = sampledAt + (sampledLengths[i] as number);
    const end = ends[i] as number;
    const sampleStart = end - (sampledTo - sampledAt);
    if (i === 0 || sharedTokens !== ends[i - 1]) memory = grown(memory.subarray(0, sharedTokens), needs[i] as number);
    memory.set(rest.subarray(restAt, restTo), sharedTokens);
    memory.set(sampled.subarray(sampledAt, sampledTo), sampleStart);
    spans.push({
      callIndex: at(meta.callIndex, i),
      prompt: memory.subarray(0, sampleStart),
      sampled: memory.subarray(sampleStart, end),
      logprobs: logprobs.slice(sampledAt, sampledTo),
      stop: at(meta.stop, i),
      sampler: at(meta.sampler, i),
    });
    restAt = restTo;
    sampledAt = sampledTo;
  });
  if (restAt !== rest.length || sampledAt !== sampled.length || sampledAt !== logprobs.length) {
    throw new TokenError('corrupt_bytes', `episode ${meta.trial}`, 'its columns do not add up; the blob cannot be read');
  }
  return { trial: meta.trial as TrialId, stopReason: meta.stopReason, spans };
}

/** Tokens at the start of `prompt` that equal the call before it, prompt and sample taken together. */
function sharedLength(prompt: Int32Array, before: Span | undefined): number {
  if (!before) return 0;
  const context = commonLength(prompt, 0, before.prompt);
  return context < before.prompt.length ? context : context + commonLength(prompt, context, before.sampled);
}

/** A copy with room for `length` tokens. */
function grown(tokens: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const memory = new Int32Array(length);
  memory.set(tokens);
  return memory;
}

export function concatInt32(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

export function concatFloat64(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
