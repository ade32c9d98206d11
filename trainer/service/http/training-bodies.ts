import { randomInt } from 'node:crypto';
import { z } from 'zod';
import { isCheckpointName, parsePath } from '../ids.ts';
import type { Operation, RunRecordOf } from '../run-journal.ts';
import { count, explain, metadata, NO_EXTERNAL_WEIGHTS } from './bodies.ts';

/** The JSON bodies of training calls, and what they ask for. */

export const addressSchema = z.object({ model_id: z.string(), seq_id: count.min(1) });

const optimizerConfig = z.object({ type: z.string() }).nullish();

/** The protocol's default rank is 32; a rank beyond the model's width (64) adds nothing. */
const loraConfig = z.object({
  rank: z.number().int().min(1).max(64).default(32),
  seed: z.number().int().nonnegative().max(0xffff_ffff).nullish(),
  train_mlp: z.boolean().default(true),
  train_attn: z.boolean().default(true),
  train_unembed: z.boolean().default(true),
});

export const createModelSchema = z.object({
  session_id: z.string(),
  model_seq_id: count,
  base_model: z.string(),
  user_metadata: metadata,
  lora_config: loraConfig,
  optimizer_config: optimizerConfig,
});

/** Without a seed the service draws one and keeps it in the journal, so that a restart makes the same adapters. */
export function loraSettings(config: z.infer<typeof loraConfig>): NonNullable<RunRecordOf<'model'>['lora']> {
  return { rank: config.rank, seed: config.seed ?? randomInt(2 ** 32), trainAttn: config.train_attn, trainMlp: config.train_mlp };
}

/** Says why a model with these settings cannot be had; null when it can. The unembedding is tied to the embedding and never adapted. */
export function refusedModel(body: z.infer<typeof createModelSchema>): string | null {
  if (!body.lora_config.train_attn && !body.lora_config.train_mlp) return 'lora_config: trains nothing; set train_attn or train_mlp';
  return refusedOptimizer(body.optimizer_config);
}

export const refusedOptimizer = (config: z.infer<typeof optimizerConfig>): string | null =>
  config && config.type !== 'adamw' ? `optimizer_config.type: '${config.type}' is not served here; use adamw` : null;

/** Says why a path is none of training state; null when it is one, whether or not the checkpoint exists. */
function refusedState(path: string): string | null {
  const kind = parsePath(path)?.kind ?? null;
  if (kind === 'weights') return null;
  const why = kind === 'sampler_weights' ? 'are weights to sample from, without the state of training' : 'is no path of a checkpoint';
  return `'${path}' ${why}; load a tinker://<run>/weights/<name> path, as save_weights answers it`;
}

/** A path that training state can be loaded from, by its form. */
const statePath = z.string().superRefine((path, context) => {
  const refusal = refusedState(path);
  if (refusal !== null) context.addIssue({ code: 'custom', message: refusal });
});

export const createFromSchema = z.object({
  session_id: z.string(),
  model_seq_id: count,
  base_model: z.string().nullish(),
  user_metadata: metadata,
  path: statePath,
  optimizer: z.boolean(),
  optimizer_config: optimizerConfig,
});

const adamParams = z.object({
  learning_rate: z.number().nonnegative(),
  beta1: z.number().min(0).lt(1),
  beta2: z.number().min(0).lt(1),
  eps: z.number().positive(),
  weight_decay: z.number().nonnegative().default(0),
  grad_clip_norm: z.number().nonnegative().default(0),
});

/** The protocol allows one hour to ten years. */
const ttlSeconds = z.number().int().min(3600).max(315_360_000).nullish();

const checkpointName = z.string().refine(isCheckpointName, "must be a name of letters, digits, '.', '_' and '-', at most 128");

/** Names of checkpoints that the caller left to us; the sequence number makes them unique in the model. */
const unnamed = (seq: number): string => `seq-${seq}`;
/** Snapshots behind a nameless sampling session live so long unless the caller says otherwise. */
const EPHEMERAL_TTL_SECONDS = 7 * 24 * 3600;

type Reader = (body: unknown, seq: number) => Operation;

const reader =
  <Schema extends z.ZodType>(schema: Schema, toOperation: (body: z.infer<Schema>, seq: number) => Operation): Reader =>
  (body, seq) => {
    const parsed = schema.safeParse(body);
    // The number is taken: a refusal must use it up, or every later call would wait for it.
    return parsed.success ? toOperation(parsed.data, seq) : { op: 'refused', error: explain(parsed.error) };
  };

export const readOptimStep = reader(z.object({ adam_params: adamParams }), ({ adam_params: p }) => ({
  op: 'optim_step',
  adam: {
    learningRate: p.learning_rate,
    beta1: p.beta1,
    beta2: p.beta2,
    eps: p.eps,
    weightDecay: p.weight_decay,
    gradClipNorm: p.grad_clip_norm,
  },
}));

export const readSaveWeights = reader(
  z.object({ path: checkpointName.nullish(), ttl_seconds: ttlSeconds, overwrite: z.boolean().default(false), user_metadata: metadata }),
  (body, seq) => ({
    op: 'save_weights',
    name: body.path ?? unnamed(seq),
    overwrite: body.overwrite,
    ttlSeconds: body.ttl_seconds ?? null,
    userMetadata: body.user_metadata ?? null,
  }),
);

/** `samplerOf` names the sampling session for the caller's number. */
export const readSaveForSampler = (samplerOf: (samplingSeqId: number) => string): Reader =>
  reader(
    z.object({
      path: checkpointName.nullish(),
      sampling_session_seq_id: count.nullish(),
      kind: z.literal('snapshot', { error: 'only snapshots are served here' }).default('snapshot'),
      ttl_seconds: ttlSeconds,
      user_metadata: metadata,
    }),
    (body, seq) => {
      const samplingSeqId = body.sampling_session_seq_id ?? null;
      if ((body.path ?? null) === null && samplingSeqId === null) {
        return { op: 'refused', error: 'path: give a name, or sampling_session_seq_id to get a sampling session' };
      }
      const isNamed = (body.path ?? null) !== null;
      return {
        op: 'save_weights_for_sampler',
        name: body.path ?? unnamed(seq),
        samplerId: isNamed || samplingSeqId === null ? null : samplerOf(samplingSeqId),
        ttlSeconds: body.ttl_seconds ?? (isNamed ? null : EPHEMERAL_TTL_SECONDS),
        userMetadata: body.user_metadata ?? null,
      };
    },
  );

export const readLoadWeights = reader(z.object({ path: statePath, optimizer: z.boolean() }), ({ path, optimizer }) => ({
  op: 'load_weights',
  path,
  optimizer,
}));

export const readSaveExternal: Reader = () => ({ op: 'refused', error: NO_EXTERNAL_WEIGHTS });
