import type { TrialId } from '../../../core/ids.ts';
import type { Episode, Span } from '../../../core/tokens/span.ts';
import type { TopkRow } from '../../../core/tokens/topk.ts';

/** How the vectors write token data, and the same in our types. Null stands for "no value". */
export type RawCall = { prompt: number[]; sampled: number[]; logprobs: number[]; call_index?: number };
export type RawRow = (number | null)[];
export type Candidates = [token: number, logprob: number][];

export function toSpan(raw: RawCall, index: number): Span {
  return {
    callIndex: raw.call_index ?? index,
    prompt: Int32Array.from(raw.prompt),
    sampled: Int32Array.from(raw.sampled),
    logprobs: Float64Array.from(raw.logprobs),
    stop: 'stop',
    sampler: 'step-0000',
  };
}

export function toEpisode(trial: string, stopReason: string | null, calls: RawCall[]): Episode {
  return { trial: trial as TrialId, stopReason, spans: calls.map(toSpan) };
}

export const toRow = (raw: RawRow) => Float64Array.from(raw, (value) => value ?? Number.NaN);
export const fromRow = (row: Float64Array): RawRow => Array.from(row, (value) => (Number.isNaN(value) ? null : value));

export function toTopkRow(row: (Candidates | null)[]): TopkRow {
  const width = Math.max(0, ...row.map((candidates) => candidates?.length ?? 0));
  const padded = row.flatMap((candidates) => Array.from({ length: width }, (_, i) => candidates?.[i] ?? ([0, Number.NaN] as const)));
  return {
    width,
    counts: Int32Array.from(row, (candidates) => candidates?.length ?? -1),
    tokens: Int32Array.from(padded, ([token]) => token),
    logprobs: Float64Array.from(padded, ([, logprob]) => logprob),
  };
}
