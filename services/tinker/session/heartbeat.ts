import { SessionLost, TinkerError } from '../errors.ts';
import type { Caller } from '../http/caller.ts';

const INTERVAL_MS = 10_000;
const TIMEOUT_MS = 10_000;
/** A session that could not be kept alive for this long is reported with every further beat. */
const WORRYING_MS = 120_000;

/** Tells the service every 10 s that its sessions are still in use. It never keeps the process alive. */
export class Heartbeat {
  readonly #caller: Caller;
  /** When each session was last heard of. */
  readonly #sessions = new Map<string, number>();
  readonly #lost = new Set<string>();

  constructor(caller: Caller) {
    this.#caller = caller;
    const timer = setInterval(() => this.#beatAll(), INTERVAL_MS);
    timer.unref();
    caller.onClose(() => clearInterval(timer));
  }

  keepAlive(sessionId: string): void {
    if (!this.#lost.has(sessionId) && !this.#sessions.has(sessionId)) this.#sessions.set(sessionId, this.#caller.nowMs());
  }

  /** The session is no longer of use here. */
  release(sessionId: string): void {
    this.#sessions.delete(sessionId);
    this.#lost.delete(sessionId);
  }

  /** @throws SessionLost when the service has said that the session is gone */
  assertAlive(sessionId: string): void {
    if (!this.#lost.has(sessionId)) return;
    throw new SessionLost(`the service ended session ${sessionId}; connect again`, { call: 'session_heartbeat', status: 410 });
  }

  /** One beat. @throws SessionLost when the session is gone */
  async beat(sessionId: string): Promise<void> {
    const body = JSON.stringify({ session_id: sessionId, type: 'session_heartbeat' });
    await this.#caller.send({
      method: 'POST',
      path: 'session_heartbeat',
      body,
      timeoutMs: TIMEOUT_MS,
      phase: 'once',
      subject: 'session',
    });
  }

  #beatAll(): void {
    for (const sessionId of this.#sessions.keys()) {
      this.beat(sessionId).then(
        () => this.#heard(sessionId),
        (error) => this.#missed(sessionId, error),
      );
    }
  }

  #heard(sessionId: string): void {
    if (this.#sessions.has(sessionId)) this.#sessions.set(sessionId, this.#caller.nowMs());
  }

  /** Only a 410 ends a session's beats: a 404 or 405 comes from servers that have no heartbeat, and an unreachable one may come back. */
  #missed(sessionId: string, error: unknown): void {
    const status = error instanceof TinkerError ? error.status : null;
    if (status === 410 && this.#sessions.delete(sessionId)) {
      this.#lost.add(sessionId);
    }
    const lastHeardMs = this.#sessions.get(sessionId);
    if (lastHeardMs === undefined || status === 404 || status === 405) return;
    if (this.#caller.nowMs() - lastHeardMs < WORRYING_MS) return;
    const reason = `session ${sessionId} could not be kept alive: ${error instanceof Error ? error.message : error}`;
    this.#caller.noteWait(lastHeardMs, { call: 'session_heartbeat', queueState: null, reason, status, nextTryMs: INTERVAL_MS });
  }
}
