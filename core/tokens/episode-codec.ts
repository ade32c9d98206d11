import type { TrialId } from '../ids.ts';
import { at } from '../lists.ts';
import { packColumns, unpackColumns } from './columns.ts';
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

/** Reads what `encodeEpisode` wrote. @throws TokenError `corrupt_bytes`. */
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
  const spans: Span[] = [];
  let restAt = 0;
  let sampledAt = 0;
  shared.forEach((sharedTokens, i) => {
    const restTo = restAt + (restLengths[i] as number);
    const sampledTo = sampledAt + (sampledLengths[i] as number);
    spans.push({
      callIndex: at(meta.callIndex, i),
      prompt: joinPrompt(spans[i - 1], sharedTokens, rest.subarray(restAt, restTo)),
      sampled: sampled.slice(sampledAt, sampledTo),
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
  const contextLength = before.prompt.length;
  const longest = Math.min(prompt.length, contextLength + before.sampled.length);
  let n = 0;
  while (n < longest && prompt[n] === (n < contextLength ? before.prompt[n] : before.sampled[n - contextLength])) n++;
  return n;
}

function joinPrompt(before: Span | undefined, sharedTokens: number, rest: Int32Array): Int32Array {
  const prompt = new Int32Array(sharedTokens + rest.length);
  if (before) {
    const fromPrompt = before.prompt.subarray(0, sharedTokens);
    prompt.set(fromPrompt);
    prompt.set(before.sampled.subarray(0, sharedTokens - fromPrompt.length), fromPrompt.length);
  }
  prompt.set(rest, sharedTokens);
  return prompt;
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
