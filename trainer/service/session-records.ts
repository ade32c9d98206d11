import { z } from 'zod';
import { StateError } from './failures.ts';

/** The records of the journal of sessions, and what they add up to. */

const recordSchema = z.discriminatedUnion('record', [
  z.object({
    record: z.literal('session'),
    sessionId: z.string(),
    tags: z.array(z.string()),
    createdAt: z.string(),
    userMetadata: z.record(z.string(), z.string()).nullable().default(null),
    displayName: z.string().nullable().default(null),
    projectId: z.string().nullable().default(null),
  }),
  /** A sign of life of the session's client. */
  z.object({ record: z.literal('seen'), sessionId: z.string(), at: z.string() }),
  z.object({ record: z.literal('finished'), sessionId: z.string(), reason: z.string(), at: z.string() }),
  /** Another client shares a sampling session; `clients` are now in it, besides the first. */
  z.object({ record: z.literal('joined'), samplerId: z.string(), clients: z.number().int().positive() }),
  z.object({
    record: z.literal('sampler'),
    samplerId: z.string(),
    sessionId: z.string(),
    baseModel: z.string(),
    modelPath: z.string().nullable(),
  }),
]);
export type SessionRecord = z.infer<typeof recordSchema>;
export type Sampler = Omit<Extract<SessionRecord, { record: 'sampler' }>, 'record'>;
export type SessionSettings = Omit<Extract<SessionRecord, { record: 'session' }>, 'record' | 'sessionId' | 'createdAt'>;
export type Session = Readonly<Omit<Extract<SessionRecord, { record: 'session' }>, 'record'>> & {
  /** ISO time of the client's last sign of life that was written down. */
  readonly seenAt: string;
  readonly finished: { readonly reason: string; readonly at: string } | null;
};

export function parseSessionRecord(path: string, header: unknown): SessionRecord {
  const parsed = recordSchema.safeParse(header);
  if (!parsed.success) throw new StateError(`${path}: a record is of an unknown form: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
