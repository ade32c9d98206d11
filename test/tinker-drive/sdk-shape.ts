import { type ForwardBackwardOutput, type SampleAll, type TensorValue, type TopkTable, topkRow } from '../../services/tinker/index.ts';

/** Our results in the names and forms in which recordings of the official client hold them. JSON has no NaN: there it is null. */

export function sampleShape(sample: SampleAll) {
  return {
    sequences: sample.sequences.map(({ tokens, logprobs, stop, sequenceId, topk }) => ({
      tokens: [...tokens],
      logprobs: logprobs && numbers(logprobs),
      stop_reason: stop,
      sequence_id: sequenceId,
      topk_logprobs: topk && topkShape(topk),
    })),
    prompt_logprobs: sample.promptLogprobs && numbers(sample.promptLogprobs),
    topk_prompt_logprobs: sample.topkPromptLogprobs && topkShape(sample.topkPromptLogprobs),
    prompt_cache_hit_tokens: sample.promptCacheHitTokens,
  };
}

/** With the scores that the drive never asks for. */
export function wholeSampleShape(sample: SampleAll) {
  const { targetPromptLogprobs: target, promptAltTokens: alt } = sample;
  return {
    ...sampleShape(sample),
    target_prompt_logprobs: target && tensorShape(target),
    prompt_alt_tokens: alt && { tokens: tensorShape(alt.tokens), logprobs: tensorShape(alt.logprobs) },
  };
}

export function lossShape({ lossFnOutputType, metrics, lossFnOutputs }: ForwardBackwardOutput) {
  const outputs = lossFnOutputs.map((record) =>
    Object.fromEntries(Object.entries(record).map(([name, tensor]) => [name, tensorShape(tensor)])),
  );
  return { loss_fn_output_type: lossFnOutputType, metrics, loss_fn_outputs: outputs };
}

function tensorShape({ values, shape }: TensorValue) {
  const isFloat = values instanceof Float32Array;
  return { data: numbers(values), dtype: isFloat ? 'float32' : 'int64', shape: [...shape] };
}

/** Per position its candidates; null for a position without any. */
function topkShape(table: TopkTable): (readonly [number, number][] | null)[] {
  return Array.from({ length: table.length }, (_, position) => {
    const row = topkRow(table, position).map(({ tokenId, logprob }): [number, number] => [tokenId, logprob]);
    return row.length === 0 ? null : row;
  });
}

export function numbers(values: Iterable<number | bigint>): (number | null)[] {
  return Array.from(values, (value) => (Number.isNaN(value) ? null : Number(value)));
}
