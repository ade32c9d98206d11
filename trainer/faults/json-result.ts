import { TOPK_MASK } from '../../services/tinker/wire/index.ts';
import { StopReason, type TopkLogprobs } from '../../services/tinker/wire/tinker_public_pb.ts';
import { floatsOf, intsOf, type OpenResult, rowsOf, widthOf } from './results.ts';

/** A result as servers of before the binary form send it. What is not finite becomes null, as JSON has no word for it. */
export function jsonResult(result: OpenResult): Readonly<Record<string, unknown>> {
  if (result.kind === 'sample') {
    const { sequences, promptLogprobs, topkPromptLogprobs, promptCacheHitTokens } = result.message;
    return {
      type: 'sample',
      sequences: sequences.map(({ tokens, logprobs, stopReason }) => ({
        tokens: [...intsOf(tokens)],
        ...(logprobs === undefined ? {} : { logprobs: [...floatsOf(logprobs)] }),
        stop_reason: stopReason === StopReason.STOP ? 'stop' : 'length',
      })),
      ...(promptLogprobs === undefined ? {} : { prompt_logprobs: [...floatsOf(promptLogprobs)] }),
      ...(topkPromptLogprobs === undefined ? {} : { topk_prompt_logprobs: topkRows(topkPromptLogprobs) }),
      prompt_cache_hit_tokens: promptCacheHitTokens,
    };
  }
  const { lossFnOutputType, lossFnOutputs, metrics } = result.message;
  return { loss_fn_output_type: lossFnOutputType, loss_fn_outputs: lossFnOutputs.flatMap((record) => datumsOf(record.fields)), metrics };
}

type Fields = Extract<OpenResult, { kind: 'loss' }>['message']['lossFnOutputs'][number]['fields'];

/** The service's loss results have float fields only. */
function datumsOf(fields: Fields): Record<string, unknown>[] {
  const datums: Record<string, unknown>[] = [];
  for (const [name, batched] of Object.entries(fields)) {
    for (const [i, row] of rowsOf(batched).entries()) {
      const shape = [row.length / widthOf(batched), ...batched.trailingShape.map(Number)];
      datums[i] = { ...datums[i], [name]: { data: [...row], dtype: 'float32', shape } };
    }
  }
  return datums;
}

/** A row without any candidate is null. */
function topkRows({ tokenIds, logprobs, k, length }: TopkLogprobs): ([number, number][] | null)[] {
  const ids = intsOf(tokenIds);
  const values = floatsOf(logprobs);
  return Array.from({ length }, (_, position) => {
    const row = Array.from({ length: k }, (_, rank): [number, number] => [ids[position * k + rank] ?? 0, values[position * k + rank] ?? 0]);
    const meant = row.filter(([, logprob]) => logprob > TOPK_MASK);
    return meant.length === 0 ? null : meant;
  });
}
