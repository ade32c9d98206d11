import { TOPK_MASK } from '../../services/tinker/wire/index.ts';
import type { TopkLogprobs } from '../../services/tinker/wire/tinker_public_pb.ts';
import type { LogprobPlace } from './fault-schemas.ts';
import { bytesOf, floatsOf, intsOf, type OpenResult } from './results.ts';

/** The tables of likeliest tokens at `place`, or all there are. Results of losses have none. */
export function candidateTables({ kind, message }: OpenResult, place: LogprobPlace | undefined): readonly TopkLogprobs[] {
  if (kind === 'loss') return [];
  const ofSamples = place === 'prompt' ? [] : message.sequences.map(({ topkSampledLogprobs }) => topkSampledLogprobs);
  const ofPrompt = place === undefined || place === 'prompt' ? [message.topkPromptLogprobs] : [];
  return (place === 'loss' ? [] : [...ofSamples, ...ofPrompt]).filter((table) => table !== undefined);
}

/** Gives every candidate a new log-probability and sorts each row by it again, likeliest first. Padding stays as it is, at the rows' ends. */
export function editCandidates(table: TopkLogprobs, edit: (logprob: number) => number): void {
  const ids = intsOf(table.tokenIds);
  const logprobs = floatsOf(table.logprobs).map((logprob) => (logprob <= TOPK_MASK ? logprob : edit(logprob)));
  const rowOf = (index: number) => Math.floor(index / table.k);
  const order = [...ids.keys()].sort((a, b) => rowOf(a) - rowOf(b) || (logprobs[b] ?? 0) - (logprobs[a] ?? 0));
  table.tokenIds = bytesOf(Int32Array.from(order, (index) => ids[index] ?? 0));
  table.logprobs = bytesOf(Float32Array.from(order, (index) => logprobs[index] ?? 0));
}
