import type { ForwardBackwardOutput, SampleAll, TensorValue } from '../../../services/tinker/index.ts';
import type { Exchange } from './scripted-server.ts';

/** Results and failures in the words of the recordings. */

export function lossJson({ lossFnOutputType, metrics, lossFnOutputs }: ForwardBackwardOutput): unknown {
  const record = (fields: Readonly<Record<string, TensorValue>>) =>
    Object.fromEntries(Object.entries(fields).map(([name, tensor]) => [name, tensorJson(tensor)]));
  return { loss_fn_output_type: lossFnOutputType, metrics, loss_fn_outputs: lossFnOutputs.map(record) };
}

function tensorJson({ values, shape }: TensorValue): unknown {
  return { dtype: values instanceof Float32Array ? 'float32' : 'int64', shape, data: Array.from(values, Number) };
}

/** Only of samples without scores of the prompt. */
export function sampleJson(sample: SampleAll): unknown {
  return {
    sequences: sample.sequences.map(({ tokens, logprobs, stop, sequenceId, topk }) => ({
      tokens: [...tokens],
      logprobs: logprobs && [...logprobs],
      stop_reason: stop,
      sequence_id: sequenceId,
      topk_logprobs: topk,
    })),
    prompt_logprobs: sample.promptLogprobs,
    topk_prompt_logprobs: sample.topkPromptLogprobs,
    target_prompt_logprobs: sample.targetPromptLogprobs,
    prompt_alt_tokens: sample.promptAltTokens,
    prompt_cache_hit_tokens: sample.promptCacheHitTokens,
  };
}

/** Our class for a failure whose last answer is this one: the official client's are named after statuses, ours after what to do. */
export function expectedClass({ path, status, res, req_headers }: Exchange): string {
  if (status === 200 && isUserError(res)) return 'BadRequest';
  if (status === 200) return req_headers['x-tinker-request-type'] === 'ForwardBackward' ? 'TrainingStateUnknown' : 'ServiceFailed';
  if (status === 401 || status === 403) return 'CredentialRefused';
  if (status === 402) return 'BillingPaused';
  if (status === 404 || status === 410) return path.endsWith('/asample') ? 'SessionLost' : 'TrainingStateUnknown';
  if (status === 408 || status === 409 || status === 429 || status >= 500) return 'RetryLater';
  return 'BadRequest';
}

function isUserError(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'category' in body && body.category === 'user';
}
