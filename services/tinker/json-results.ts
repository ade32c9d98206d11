import type { z } from 'zod';
import type { jsonForwardBackwardSchema, jsonSampleSchema } from './answers.ts';
import { type ForwardBackwardOutput, type SampleResponse, TOPK_MASK, type TopkTable } from './wire/index.ts';

/** Results of older servers (JSON) in the form of the newer ones (protobuf). */

export function fromJsonForwardBackward(json: z.infer<typeof jsonForwardBackwardSchema>): ForwardBackwardOutput {
  return {
    lossFnOutputType: json.loss_fn_output_type,
    lossFnOutputs: json.loss_fn_outputs.map((record) =>
      Object.fromEntries(
        Object.entries(record).map(([name, { data, dtype, shape }]) => {
          const values = dtype === 'int64' ? Int32Array.from(data) : Float32Array.from(data);
          return [name, { values, shape: shape ?? [data.length] }];
        }),
      ),
    ),
    metrics: json.metrics ?? {},
  };
}

export function fromJsonSample(json: z.infer<typeof jsonSampleSchema>): SampleResponse {
  return {
    sequences: json.sequences.map(({ tokens, logprobs, stop_reason }) => ({
      tokens: Int32Array.from(tokens),
      logprobs: logprobs ? withNaN(logprobs) : null,
      stopReason: stop_reason,
      topk: null,
    })),
    promptLogprobs: json.prompt_logprobs ? withNaN(json.prompt_logprobs) : null,
    topkPromptLogprobs: json.topk_prompt_logprobs ? topkTable(json.topk_prompt_logprobs) : null,
    promptCacheHitTokens: json.prompt_cache_hit_tokens ?? 0,
    targetPromptLogprobs: null,
    promptAltTokens: null,
  };
}

function withNaN(values: readonly (number | null)[]): Float32Array {
  return Float32Array.from(values, (value) => value ?? Number.NaN);
}

function topkTable(rows: readonly (readonly [number, number][] | null)[]): TopkTable {
  const k = Math.max(0, ...rows.map((row) => row?.length ?? 0));
  const table = {
    k,
    length: rows.length,
    tokenIds: new Int32Array(k * rows.length),
    logprobs: new Float32Array(k * rows.length).fill(TOPK_MASK),
  };
  for (const [position, row] of rows.entries()) {
    for (const [rank, [tokenId, logprob]] of (row ?? []).entries()) {
      table.tokenIds[position * k + rank] = tokenId;
      table.logprobs[position * k + rank] = logprob;
    }
  }
  return table;
}
