import { z } from 'zod';

/** Shapes of the JSON answers, only as far as they are used. Unknown fields are ignored, as the protocol asks. */

/** 0 and negative limits would cut a batch into nothing. */
const limit = z.number().int().positive().optional();

export const clientConfigSchema = z.object({
  pjwt_auth_enabled: z.boolean().optional(),
  credential_default_source: z.string().optional(),
  parallel_fwdbwd_chunks: z.boolean().optional(),
  proto_compress_fwdbwd: z.boolean().optional(),
  fwdbwd_max_chunk_len: limit,
  fwdbwd_max_chunk_bytes_count: limit,
});

export const dynamicConfigSchema = z.object({ sample_cancel_enabled: z.boolean().optional() });

export const tokenSchema = z.object({ jwt: z.string() });

export const sessionSchema = z.object({ session_id: z.string(), error_message: z.string().nullish() });

export const capabilitiesSchema = z.object({
  supported_models: z.array(
    z.object({
      model_name: z.string().nullish(),
      max_context_length: z.number().nullish(),
      trainable: z.boolean().nullish(),
      sampleable: z.boolean().nullish(),
    }),
  ),
});

export const promiseSchema = z.object({ request_id: z.string() });

/** Some servers answer a future here. */
export const samplingSessionSchema = z.union([z.object({ sampling_session_id: z.string() }), promiseSchema]);
export const openedSamplingSessionSchema = z.object({ sampling_session_id: z.string() });

export const createdModelSchema = z.object({ model_id: z.string() });
export const loadedSchema = z.object({ model_id: z.string().nullish() });
export const savedSchema = z.object({ path: z.string() });
export const optimStepSchema = z.object({ metrics: z.record(z.string(), z.number()).nullish() });

export const modelInfoSchema = z.object({
  model_data: z.object({ arch: z.string().nullish(), model_name: z.string().nullish(), tokenizer_id: z.string().nullish() }),
  is_lora: z.boolean().nullish(),
  lora_rank: z.number().nullish(),
  model_name: z.string().nullish(),
});

export const checkpointsSchema = z.object({
  checkpoints: z.array(
    z.object({
      checkpoint_id: z.string(),
      checkpoint_type: z.string(),
      tinker_path: z.string(),
      time: z.string().nullish(),
      size_bytes: z.number().nullish(),
      expires_at: z.string().nullish(),
    }),
  ),
});

/** What retrieve_future says besides a result. */
export const pendingSchema = z.object({
  type: z.literal('try_again'),
  queue_state: z.string().nullish(),
  queue_state_reason: z.string().nullish(),
});
export const metadataSchema = z.object({ status: z.literal('complete_metadata') });
export const failedSchema = z.object({ error: z.string(), category: z.string().default('unknown') });
