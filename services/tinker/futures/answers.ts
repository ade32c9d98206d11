import { z } from 'zod';
import { numberSchema } from './json-results.ts';

/** Shapes of the JSON answers, only as far as they are used. Unknown fields are ignored, as the protocol asks. */

/** 0 and negative limits would cut a batch into nothing. */
const limit = z.number().int().positive().optional();

export const clientConfigSchema = z.object({
  sample_dispatch_bytes_semaphore_size: limit,
  inflight_response_bytes_semaphore_size: limit,
  fwdbwd_dispatch_bytes_semaphore_size: limit,
  pjwt_auth_enabled: z.boolean().optional(),
  credential_default_source: z.string().optional(),
  parallel_fwdbwd_chunks: z.boolean().optional(),
  fwdbwd_max_chunk_len: limit,
  fwdbwd_max_chunk_bytes_count: limit,
  proto_compress_fwdbwd: z.boolean().optional(),
  sample_no_retries: z.boolean().optional(),
  sample_enable_stuck_detection: z.boolean().optional(),
  sample_max_concurrent_requests: limit,
  sample_use_retrieve_futures: z.boolean().optional(),
});

export const dynamicConfigSchema = z.object({ refresh_interval_sec: z.number().optional(), sample_cancel_enabled: z.boolean().optional() });

export const tokenSchema = z.object({ jwt: z.string() });

export const sessionSchema = z.object({
  session_id: z.string(),
  info_message: z.string().nullish(),
  warning_message: z.string().nullish(),
  error_message: z.string().nullish(),
});

export const promiseSchema = z.object({ request_id: z.string(), sample_sequence_ids: z.array(z.string()).nullish() });

/** Some servers answer a future here. */
export const samplingSessionSchema = z.union([z.object({ sampling_session_id: z.string() }), promiseSchema]);
export const openedSamplingSessionSchema = z.object({ sampling_session_id: z.string() });

export const createdModelSchema = z.object({ model_id: z.string() });
export const loadedSchema = ofCall('load_weights', { path: z.string().nullish(), model_id: z.string().nullish() });
export const unloadedSchema = ofCall('unload_model', { model_id: z.string().nullish() });
/** Some servers answer a future here. */
export const unloadAnswerSchema = z.union([promiseSchema, unloadedSchema]);
export const savedSchema = z.object({ path: z.string() });
export const savedExternalSchema = z.object({ path: z.string(), size_bytes: z.number().nullish() });
export const ephemeralSchema = z.object({ sampling_session_id: z.string() });
/** A metric that is no number does not undo the step. */
export const optimStepSchema = ofCall('optim_step', { metrics: z.record(z.string(), numberSchema).nullish() });

export const modelInfoSchema = z.object({
  model_data: z.object({ arch: z.string().nullish(), model_name: z.string().nullish(), tokenizer_id: z.string().nullish() }),
  is_lora: z.boolean().nullish(),
  lora_rank: z.number().nullish(),
  model_name: z.string().nullish(),
  optimizer_config: z.looseObject({ type: z.string() }).nullish(),
});

/** What retrieve_future says besides a result: its one decisive field counts, an odd value of another is read as none. */
export const pendingSchema = z.object({
  type: z.literal('try_again'),
  queue_state: z.string().nullish().catch('unknown'),
  queue_state_reason: z.string().nullish().catch(null),
});
export const metadataSchema = z.object({
  status: z.literal('complete_metadata'),
  response_payload_size: z.number().nonnegative().catch(0),
});
export const failedSchema = z.object({
  error: z.unknown().refine((error) => error !== undefined && error !== null),
  category: z.string().catch('unknown'),
});

/** What retrieve_futures says of a sampling session. */
export const completionsSchema = z.object({
  completions: z.array(
    z.object({
      state: z.enum(['finished', 'failed']),
      request_id: z.string(),
      response_payload_uncompressed_size: z.number().nonnegative().nullish(),
    }),
  ),
  cursor: z.number(),
});

/**
 * A result whose fields may all be missing. It needs one of them, or its type, unless it is empty: an object of other things only,
 * such as `{detail}`, says nothing about the call.
 */
function ofCall<Fields extends z.ZodRawShape>(type: string, fields: Fields) {
  const isOf = (answer: Record<string, unknown>) =>
    answer.type === type || Object.keys(fields).some((field) => field in answer) || Object.keys(answer).length === 0;
  return z
    .looseObject(fields)
    .refine(({ error = null }) => error === null, 'it names an error')
    .refine(isOf, `neither of type ${type} nor with ${Object.keys(fields).join(' or ')}`);
}
