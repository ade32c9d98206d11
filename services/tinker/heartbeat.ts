import type { Caller } from './caller.ts';
import { SessionLost } from './errors.ts';

const INTERVAL_MS = 10_000;
const TIMEOUT_MS = 10_000;

/** Tells the service every 10 s that its sessions are still in use. It never keeps the process alive. */
export class Heartbeat {
  readonly #caller: Caller;
  readonly #sessions = new Set<string>();
  readonly #lost = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#timer = setInterval(() => this.#beatAll(), INTERVAL_MS);
    this.#timer.unref();
  }

  keepAlive(sessionId: string): void {
    if (!this.#lost.has(sessionId)) this.#sessions.add(sessionId);
  }

  /** Whether the service has said that the session is gone. */
  isLost(sessionId: string): boolean {
    return this.#lost.has(sessionId);
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

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Only a 410 ends a session's beats: a 404 or 405 comes from servers that have no heartbeat, and an unreachable one may come back. */
  #beatAll(): void {
    for (const sessionId of this.#sessions) {
      this.beat(sessionId).catch((error) => {
        if (!(error instanceof SessionLost) || error.status !== 410) return;
        this.#sessions.delete(sessionId);
        this.#lost.add(sessionId);
      });
    }
  }
}
