import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { HttpFailure, StateError } from './failures.ts';
import { samplerId } from './ids.ts';
import { Journal } from './journal.ts';

const recordSchema = z.discriminatedUnion('record', [
  z.object({ record: z.literal('session'), sessionId: z.string(), tags: z.array(z.string()), createdAt: z.string() }),
  z.object({ record: z.literal('finished'), sessionId: z.string(), reason: z.string(), at: z.string() }),
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
export type Session = {
  readonly sessionId: string;
  readonly tags: readonly string[];
  readonly createdAt: string;
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

  constructor(path: string, now: () => Date) {
    this.#now = now;
    this.#journal = Journal.open(path, ({ header }) => this.#add(parseRecord(path, header)));
    this.#forgetOld();
  }

  create(tags: readonly string[]): string {
    const sessionId = `session-${randomUUID()}`;
    this.#write({ record: 'session', sessionId, tags: [...tags], createdAt: this.#now().toISOString() });
    return sessionId;
  }

  /** Throws HttpFailure 404 for a session this service never made. */
  get(sessionId: string): Session {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) throw new HttpFailure(404, `session_id: no session '${sessionId}'; create one first`);
    return session;
  }

  all(): readonly Session[] {
    return [...this.#sessions.values()];
  }

  /** The first reason stands. */
  finish(sessionId: string, reason: string): void {
    if (this.get(sessionId).finished === null) this.#write({ record: 'finished', sessionId, reason, at: this.#now().toISOString() });
  }

  /** A repeat with the same number answers the first sampling session. */
  createSampler(sessionId: string, samplingSeqId: number, baseModel: string, modelPath: string | null): Sampler {
    this.get(sessionId);
    return this.addSampler(samplerId(sessionId, samplingSeqId), sessionId, baseModel, modelPath);
  }

  addSampler(id: string, sessionId: string, baseModel: string, modelPath: string | null): Sampler {
    const known = this.#samplers.get(id);
    if (known !== undefined) return known;
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
        this.#sessions.set(record.sessionId, { ...record, finished: null });
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
      ...this.all().flatMap(({ sessionId, tags, createdAt, finished }): SessionRecord[] => [
        { record: 'session', sessionId, tags: [...tags], createdAt },
        ...(finished === null ? [] : [{ record: 'finished' as const, sessionId, ...finished }]),
      ]),
      ...[...this.#samplers.values()].map((sampler): SessionRecord => ({ ...sampler, record: 'sampler' })),
    ];
  }
}

function parseRecord(path: string, header: unknown): SessionRecord {
  const parsed = recordSchema.safeParse(header);
  if (!parsed.success) throw new StateError(`${path}: a record is of an unknown form: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
