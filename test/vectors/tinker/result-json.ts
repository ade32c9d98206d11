import { combineOutputs } from '../../../services/tinker/training/combine.ts';
import { type ForwardBackwardOutput, type SampleResponse, type TopkTable, topkRow } from '../../../services/tinker/wire/index.ts';
import { type JsonNumber, type JsonTensor, mapValues, spelled, spelledAll, tensorJson, tidyFloat, tidyTensor } from './wire-json.ts';

/** Results in the recorder's JSON: ours renamed, and the recorded ones with what the recorders leave out brought to one form. */

type JsonTopk = readonly (readonly (readonly [number, JsonNumber])[] | null)[] | null;
export type JsonOutput = {
  readonly loss_fn_output_type: string;
  readonly metrics?: Readonly<Record<string, JsonNumber>> | null;
  readonly loss_fn_outputs: readonly Readonly<Record<string, JsonTensor>>[];
};
export type JsonSample = {
  readonly sequences: readonly {
    readonly tokens: readonly number[];
    readonly logprobs?: readonly JsonNumber[] | null;
    readonly stop_reason: string;
    readonly topk_logprobs?: JsonTopk;
  }[];
  readonly prompt_logprobs?: readonly JsonNumber[] | null;
  readonly topk_prompt_logprobs?: JsonTopk;
  readonly target_prompt_logprobs?: JsonTensor | null;
  readonly prompt_alt_tokens?: { readonly tokens: JsonTensor; readonly logprobs: JsonTensor } | null;
  readonly prompt_cache_hit_tokens?: number | null;
};

/** As the recorded client returns it: it joins chunks even when there is one. */
export function outputJson(output: ForwardBackwardOutput): unknown {
  const { lossFnOutputType, lossFnOutputs, metrics } = combineOutputs([output]);
  return {
    loss_fn_output_type: lossFnOutputType,
    metrics: mapValues(metrics, spelled),
    loss_fn_outputs: lossFnOutputs.map((record) => mapValues(record, tensorJson)),
  };
}

export function tidyOutput({ loss_fn_output_type, metrics, loss_fn_outputs }: JsonOutput): unknown {
  return {
    loss_fn_output_type,
    metrics: mapValues(metrics ?? {}, (value) => value ?? 'NaN'),
    loss_fn_outputs: loss_fn_outputs.map((record) => mapValues(record, tidyTensor)),
  };
}

export function sampleJson(response: SampleResponse) {
  const { targetPromptLogprobs: target, promptAltTokens: alt } = response;
  return {
    sequences: response.sequences.map(({ tokens, logprobs, stopReason, topk }) => ({
      tokens: [...tokens],
      logprobs: logprobs && spelledAll(logprobs),
      stop_reason: stopReason,
      topk_logprobs: topk && rows(topk),
    })),
    prompt_logprobs: response.promptLogprobs && spelledAll(response.promptLogprobs),
    topk_prompt_logprobs: response.topkPromptLogprobs && rows(response.topkPromptLogprobs),
    target_prompt_logprobs: target && tensorJson(target),
    prompt_alt_tokens: alt && { tokens: tensorJson(alt.tokens), logprobs: tensorJson(alt.logprobs) },
    prompt_cache_hit_tokens: response.promptCacheHitTokens,
  };
}

/** Numbers as 32-bit floats, which JSON results need not be. */
export function tidySample(json: JsonSample): unknown {
  const { target_prompt_logprobs: target, prompt_alt_tokens: alt } = json;
  return {
    sequences: json.sequences.map(({ tokens, logprobs, stop_reason, topk_logprobs }) => ({
      tokens,
      logprobs: tidyNumbers(logprobs),
      stop_reason,
      topk_logprobs: tidyRows(topk_logprobs),
    })),
    prompt_logprobs: tidyNumbers(json.prompt_logprobs),
    topk_prompt_logprobs: tidyRows(json.topk_prompt_logprobs),
    target_prompt_logprobs: target ? tidyTensor(target) : null,
    prompt_alt_tokens: alt ? { tokens: tidyTensor(alt.tokens), logprobs: tidyTensor(alt.logprobs) } : null,
    prompt_cache_hit_tokens: json.prompt_cache_hit_tokens ?? 0,
  };
}

export function tidyNumbers(values: readonly JsonNumber[] | null | undefined): JsonNumber[] | null {
  return values ? values.map(tidyFloat) : null;
}

function rows(table: TopkTable): unknown {
  return Array.from({ length: table.length }, (_, position) =>
    topkRow(table, position).map(({ tokenId, logprob }) => [tokenId, spelled(logprob)]),
  );
}

/** A position without candidates is null there and has none here. */
function tidyRows(table: JsonTopk | undefined): unknown {
  return table ? table.map((row) => (row ?? []).map(([id, logprob]) => [id, tidyFloat(logprob)])) : null;
}
