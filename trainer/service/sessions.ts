import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { HttpFailure, StateError, UserError } from './failures.ts';
import { samplerId } from './ids.ts';
import { Journal } from './journal.ts';

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
type SessionRecord = z.infer<typeof recordSchema>;
export type Sampler = Omit<Extract<SessionRecord, { record: 'sampler' }>, 'record'>;
export type SessionSettings = Omit<Extract<SessionRecord, { record: 'session' }>, 'record' | 'sessionId' | 'createdAt'>;
export type Session = Readonly<Omit<Extract<SessionRecord, { record: 'session' }>, 'record'>> & {
  readonly finished: { readonly reason: string; readonly at: string } | null;
};

/** Sessions that ended longer ago are forgotten with their samplers when the service starts. */
const FORGET_FINISHED_AFTER_MS = 7 * 24 * 3600 * 1000;

/** Client sessions and their sampling sessions; all of it survives a restart. */
export class Sessions {
  readonly #journal: Journal;
  readonly #now: () => Date;
  readonly #sessions = new Map<string, Session>();
  readonly #samplers = new Map<string, Sampler>();
  readonly #joined = new Map<string, number>();

  constructor(path: string, now: () => Date) {
    this.#now = now;
    this.#journal = Journal.open(path, ({ header }) => this.#add(parseRecord(path, header)));
    this.#forgetOld();
  }

  create(settings: SessionSettings): string {
    const sessionId = `session-${randomUUID()}`;
    this.#write({ record: 'session', sessionId, createdAt: this.#now().toISOString(), ...settings });
    return sessionId;
  }

  moveToProject(sessionId: string, projectId: string): void {
    const { finished: _, ...session } = this.get(sessionId);
    this.#write({ record: 'session', ...session, projectId });
  }

  /** Throws HttpFailure 404 for a session this service never made. */
  get(sessionId: string): Session {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) throw new HttpFailure(404, `session_id: no session '${sessionId}'; create one first`);
    return session;
  }

  /** Newest first. */
  all(): readonly Session[] {
    return [...this.#sessions.values()].sort((a, b) => b.createdAt.localeCompare(a.createdAt) || b.sessionId.localeCompare(a.sessionId));
  }

  /** The first reason stands. */
  finish(sessionId: string, reason: string): void {
    if (this.get(sessionId).finished === null) this.#write({ record: 'finished', sessionId, reason, at: this.#now().toISOString() });
  }

  /** A repeat with the same number answers the first sampling session. Throws UserError when that is of other weights. */
  createSampler(sessionId: string, samplingSeqId: number, baseModel: string, modelPath: string | null): Sampler {
    this.get(sessionId);
    return this.addSampler(samplerId(sessionId, samplingSeqId), sessionId, baseModel, modelPath);
  }

  /** Returns the number of a client that joins a sampling session: 1, 2, …; the first client is 0. */
  joinSampler(id: string): number {
    const clients = (this.#joined.get(this.sampler(id).samplerId) ?? 0) + 1;
    this.#write({ record: 'joined', samplerId: id, clients });
    return clients;
  }

  addSampler(id: string, sessionId: string, baseModel: string, modelPath: string | null): Sampler {
    const known = this.#samplers.get(id);
    if (known?.modelPath === modelPath && known.baseModel === baseModel) return known;
    if (known !== undefined) {
      const of = known.modelPath ?? known.baseModel;
      throw new UserError(`conflict: sampling session ${id} is one of ${of}; take the next sampling_session_seq_id`);
    }
    const sampler = { samplerId: id, sessionId, baseModel, modelPath };
    this.#write({ record: 'sampler', ...sampler });
    return sampler;
  }

  /** Throws HttpFailure 404 for an unknown sampling session. */
  sampler(id: string): Sampler {
    const sampler = this.#samplers.get(id);
    if (sampler === undefined) throw new HttpFailure(404, `sampling_session_id: no sampling session '${id}'; create one first`);
    return sampler;
  }

  hasSampler(id: string): boolean {
    return this.#samplers.has(id);
  }

  samplersOf(sessionId: string): readonly Sampler[] {
    return [...this.#samplers.values()].filter((sampler) => sampler.sessionId === sessionId);
  }

  close(): void {
    this.#journal.close();
  }

  #write(record: SessionRecord): void {
    this.#journal.append(record, undefined, true);
    this.#add(record);
  }

  #add(record: SessionRecord): void {
    switch (record.record) {
      case 'session':
        this.#sessions.set(record.sessionId, { ...record, finished: this.#sessions.get(record.sessionId)?.finished ?? null });
        return;
      case 'joined':
        this.#joined.set(record.samplerId, record.clients);
        return;
      case 'finished': {
        const session = this.#sessions.get(record.sessionId);
        if (session !== undefined) this.#sessions.set(record.sessionId, { ...session, finished: { reason: record.reason, at: record.at } });
        return;
      }
      case 'sampler':
        this.#samplers.set(record.samplerId, record);
        return;
    }
  }

  #forgetOld(): void {
    const limit = this.#now().getTime() - FORGET_FINISHED_AFTER_MS;
    const old = this.all().filter(({ finished }) => finished !== null && Date.parse(finished.at) < limit);
    if (old.length === 0) return;
    for (const { sessionId } of old) this.#sessions.delete(sessionId);
    for (const [id, sampler] of this.#samplers) if (!this.#sessions.has(sampler.sessionId)) this.#samplers.delete(id);
    this.#journal.rewrite(
      this.#records().map((header) => ({ header, payload: new Uint8Array() })),
      () => {},
    );
  }

  #records(): SessionRecord[] {
    return [
      ...this.all().flatMap(({ finished, ...session }): SessionRecord[] => [
        { ...session, record: 'session' },
        ...(finished === null ? [] : [{ record: 'finished' as const, sessionId: session.sessionId, ...finished }]),
      ]),
      ...[...this.#samplers.values()].map((sampler): SessionRecord => ({ ...sampler, record: 'sampler' })),
      ...[...this.#joined]
        .filter(([id]) => this.#samplers.has(id))
        .map(([id, clients]) => ({ record: 'joined' as const, samplerId: id, clients })),
    ];
  }
}

function parseRecord(path: string, header: unknown): SessionRecord {
  const parsed = recordSchema.safeParse(header);
  if (!parsed.success) throw new StateError(`${path}: a record is of an unknown form: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
