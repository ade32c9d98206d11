import { z } from 'zod';

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

/** Some servers answer a future here. */
export const unloadedSchema = z.looseObject({});

export const createdModelSchema = z.object({ model_id: z.string() });
export const loadedSchema = z.object({ path: z.string().nullish(), model_id: z.string().nullish() });
export const savedSchema = z.object({ path: z.string() });
export const savedExternalSchema = z.object({ path: z.string(), size_bytes: z.number().nullish() });
export const ephemeralSchema = z.object({ sampling_session_id: z.string() });
export const optimStepSchema = z.object({ metrics: z.record(z.string(), z.number()).nullish() });

export const modelInfoSchema = z.object({
  model_data: z.object({ arch: z.string().nullish(), model_name: z.string().nullish(), tokenizer_id: z.string().nullish() }),
  is_lora: z.boolean().nullish(),
  lora_rank: z.number().nullish(),
  model_name: z.string().nullish(),
  optimizer_config: z.looseObject({ type: z.string() }).nullish(),
});

/** What retrieve_future says besides a result. */
export const pendingSchema = z.object({
  type: z.literal('try_again'),
  queue_state: z.string().nullish(),
  queue_state_reason: z.string().nullish(),
});
export const metadataSchema = z.object({
  status: z.literal('complete_metadata'),
  response_payload_size: z.number().nonnegative().optional(),
});
export const failedSchema = z.object({ error: z.string(), category: z.string().default('unknown') });

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
