import { randomUUID } from 'node:crypto';
import { HttpFailure, UserError } from './failures.ts';
import { samplerId } from './ids.ts';
import { Journal } from './journal.ts';
import { parseSessionRecord, type Sampler, type Session, type SessionRecord, type SessionSettings } from './session-records.ts';

const DAY_MS = 24 * 3600 * 1000;
/** A session without a sign of life for so long is over. */
const IDLE_AFTER_MS = 7 * DAY_MS;
/** Sessions that ended longer ago are forgotten with their samplers. */
const FORGET_FINISHED_AFTER_MS = 7 * DAY_MS;
/** Signs of life are written down no more often. */
const WRITE_SEEN_EVERY_MS = 3600 * 1000;
const IDLE = 'idle';

/** Client sessions and their sampling sessions; all of it survives a restart. */
export class Sessions {
  readonly #journal: Journal;
  readonly #now: () => Date;
  readonly #sessions = new Map<string, Session>();
  readonly #samplers = new Map<string, Sampler>();
  readonly #joined = new Map<string, number>();

  constructor(path: string, now: () => Date) {
    this.#now = now;
    this.#journal = Journal.open(path, ({ header }) => this.#add(parseSessionRecord(path, header)));
    this.forgetOld();
  }

  create(settings: SessionSettings): string {
    const sessionId = `session-${randomUUID()}`;
    this.#write({ record: 'session', sessionId, createdAt: this.#now().toISOString(), ...settings });
    return sessionId;
  }

  moveToProject(sessionId: string, projectId: string): void {
    const { finished: _, seenAt: __, ...session } = this.get(sessionId);
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

  /** Takes note of a sign of life. A session that had ended for want of one goes on. */
  touch(sessionId: string): void {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return;
    const { finished, seenAt } = session;
    const isNews = this.#now().getTime() - Date.parse(seenAt) >= WRITE_SEEN_EVERY_MS;
    if (isNews || finished?.reason === IDLE) this.#write({ record: 'seen', sessionId, at: this.#now().toISOString() });
  }

  /** Ends the sessions that gave no sign of life for a week, and answers them. `lastCallAt`: ISO times of calls that are known elsewhere. */
  endIdle(lastCallAt: (sessionId: string) => readonly string[]): readonly string[] {
    const limit = this.#now().getTime() - IDLE_AFTER_MS;
    const isIdle = ({ sessionId, seenAt }: Session) => [seenAt, ...lastCallAt(sessionId)].every((at) => Date.parse(at) < limit);
    const idle = this.all().filter((session) => session.finished === null && isIdle(session));
    for (const { sessionId } of idle) this.finish(sessionId, IDLE);
    return idle.map(({ sessionId }) => sessionId);
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
        this.#sessions.set(record.sessionId, {
          seenAt: record.createdAt,
          finished: null,
          ...this.#sessions.get(record.sessionId),
          ...record,
        });
        return;
      case 'seen': {
        const session = this.#sessions.get(record.sessionId);
        if (session === undefined) return;
        const finished = session.finished?.reason === IDLE ? null : session.finished;
        this.#sessions.set(record.sessionId, { ...session, seenAt: record.at, finished });
        return;
      }
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

  /** Forgets what ended long ago. */
  forgetOld(): void {
    const limit = this.#now().getTime() - FORGET_FINISHED_AFTER_MS;
    const old = this.all().filter(({ finished }) => finished !== null && Date.parse(finished.at) < limit);
    if (old.length === 0) return;
    for (const { sessionId } of old) this.#sessions.delete(sessionId);
    for (const [id, sampler] of this.#samplers) if (!this.#sessions.has(sampler.sessionId)) this.#samplers.delete(id);
    for (const id of this.#joined.keys()) if (!this.#samplers.has(id)) this.#joined.delete(id);
    this.#journal.rewrite(
      this.#records().map((header) => ({ header, payload: new Uint8Array() })),
      () => {},
    );
  }

  #records(): SessionRecord[] {
    return [
      ...this.all().flatMap(({ finished, seenAt, ...session }): SessionRecord[] => [
        { ...session, record: 'session' },
        { record: 'seen', sessionId: session.sessionId, at: seenAt },
        ...(finished === null ? [] : [{ record: 'finished' as const, sessionId: session.sessionId, ...finished }]),
      ]),
      ...[...this.#samplers.values()].map((sampler): SessionRecord => ({ ...sampler, record: 'sampler' })),
      ...[...this.#joined].map(([id, clients]) => ({ record: 'joined' as const, samplerId: id, clients })),
    ];
  }
}
