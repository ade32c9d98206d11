import { z } from 'zod';
import { StateError } from './failures.ts';

/** The records of one model's journal. */

const loraSchema = z.object({
  rank: z.number().int().positive(),
  seed: z.number().int().nonnegative(),
  trainAttn: z.boolean(),
  trainMlp: z.boolean(),
});

const adamSchema = z.object({
  learningRate: z.number(),
  beta1: z.number(),
  beta2: z.number(),
  eps: z.number(),
  weightDecay: z.number(),
  gradClipNorm: z.number(),
});

const userMetadataSchema = z.record(z.string(), z.string()).nullable();

const operationSchema = z.discriminatedUnion('op', [
  /** Fresh adapters, as the model record says. */
  z.object({ op: z.literal('create') }),
  z.object({ op: z.literal('create_from'), path: z.string(), optimizer: z.boolean() }),
  /** The body is the record's payload. */
  z.object({ op: z.literal('forward_backward'), forwardOnly: z.boolean() }),
  z.object({ op: z.literal('optim_step'), adam: adamSchema }),
  z.object({
    op: z.literal('save_weights'),
    name: z.string(),
    overwrite: z.boolean(),
    ttlSeconds: z.number().nullable(),
    userMetadata: userMetadataSchema,
  }),
  z.object({
    op: z.literal('save_weights_for_sampler'),
    name: z.string(),
    /** Set when the caller wants a sampling session instead of a path. */
    samplerId: z.string().nullable(),
    ttlSeconds: z.number().nullable(),
    userMetadata: userMetadataSchema,
  }),
  z.object({ op: z.literal('load_weights'), path: z.string(), optimizer: z.boolean() }),
  /** A call of the right shape that cannot be carried out: it fails when its turn comes, and uses up its number. */
  z.object({ op: z.literal('refused'), error: z.string() }),
]);

const recordSchema = z.discriminatedUnion('record', [
  z.object({
    record: z.literal('model'),
    modelId: z.string(),
    sessionId: z.string(),
    /** Null until a create-via-load has read its checkpoint. */
    baseModel: z.string().nullable(),
    lora: loraSchema.nullable(),
    userMetadata: userMetadataSchema,
    createdAt: z.string(),
  }),
  z.object({ record: z.literal('request'), seq: z.number().int().nonnegative(), operation: operationSchema }),
  z.object({
    record: z.literal('done'),
    seq: z.number().int().nonnegative(),
    outcome: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('json'), value: z.record(z.string(), z.unknown()) }),
      z.object({ kind: z.literal('proto') }),
      z.object({ kind: z.literal('failed'), error: z.string(), category: z.enum(['user', 'server']) }),
    ]),
    /** Set when the model is another one after this call: the payload is its weights (so many bytes), then its optimizer state. */
    state: z.object({ weightsBytes: z.number().int().positive() }).nullable(),
    at: z.string(),
  }),
  z.object({
    record: z.literal('checkpoint'),
    kind: z.enum(['weights', 'sampler_weights']),
    name: z.string(),
    seq: z.number().int(),
    time: z.string(),
    sizeBytes: z.number().int(),
    weightsSha256: z.string(),
    expiresAt: z.string().nullable(),
    userMetadata: userMetadataSchema,
  }),
  z.object({ record: z.literal('checkpoint_removed'), kind: z.enum(['weights', 'sampler_weights']), name: z.string() }),
]);

export type RunRecord = z.infer<typeof recordSchema>;
export type RunRecordOf<Kind extends RunRecord['record']> = Extract<RunRecord, { record: Kind }>;
export type Operation = z.infer<typeof operationSchema>;
export type OperationOf<Op extends Operation['op']> = Extract<Operation, { op: Op }>;

export function parseRunRecord(path: string, header: unknown): RunRecord {
  const parsed = recordSchema.safeParse(header);
  if (!parsed.success) throw new StateError(`${path}: a record is of an unknown form: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
