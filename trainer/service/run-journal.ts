import { z } from 'zod';
import { StateError } from './failures.ts';
import { CHECKPOINT_KINDS } from './ids.ts';

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

/** What was asked for under a sequence number: a repeat has the same, another call has not. */
const callSchema = z.object({ op: z.string(), sha256: z.string() });

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
    /** Set when the caller wants a sampling session instead of a path: the checkpoint is then seen by that session only. */
    samplerId: z.string().nullable(),
    ttlSeconds: z.number().nullable(),
    userMetadata: userMetadataSchema,
  }),
  z.object({ op: z.literal('load_weights'), path: z.string(), optimizer: z.boolean() }),
  /** A call of the right shape that cannot be carried out: it fails when its turn comes, and uses up its number. */
  z.object({ op: z.literal('refused'), error: z.string() }),
]);

const checkpointKind = z.enum(CHECKPOINT_KINDS);

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
  z.object({
    record: z.literal('request'),
    seq: z.number().int().nonnegative(),
    operation: operationSchema,
    /** Absent in records of services that did not compare repeats. */
    call: callSchema.optional(),
  }),
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
    call: callSchema.optional(),
  }),
  z.object({
    record: z.literal('checkpoint'),
    kind: checkpointKind,
    name: z.string(),
    seq: z.number().int(),
    /** What its files are called; absent when they have the plain name. */
    stem: z.string().optional(),
    time: z.string(),
    sizeBytes: z.number().int(),
    weightsSha256: z.string(),
    /** Null for weights to sample from, and in records of services that did not check what they read. */
    optimizerSha256: z.string().nullable().default(null),
    expiresAt: z.string().nullable(),
    userMetadata: userMetadataSchema,
    public: z.boolean().default(false),
  }),
  z.object({
    record: z.literal('checkpoint_removed'),
    kind: checkpointKind,
    name: z.string(),
    /** Set when it went because its time was over. */
    expiredAt: z.string().nullable().default(null),
  }),
]);

export type CallIdentity = z.infer<typeof callSchema>;
export type RunRecord = z.infer<typeof recordSchema>;
export type RunRecordOf<Kind extends RunRecord['record']> = Extract<RunRecord, { record: Kind }>;
export type Operation = z.infer<typeof operationSchema>;
export type OperationOf<Op extends Operation['op']> = Extract<Operation, { op: Op }>;

export function parseRunRecord(path: string, header: unknown): RunRecord {
  const parsed = recordSchema.safeParse(header);
  if (!parsed.success) throw new StateError(`${path}: a record is of an unknown form: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
