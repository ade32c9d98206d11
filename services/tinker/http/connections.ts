import { Agent, type Dispatcher } from 'undici';

/** The connections to the service. */
export class Connections {
  readonly #given: Dispatcher | undefined;
  /** Replaced ones, until their requests have ended. */
  readonly #old = new Set<Agent>();
  #own: Agent;

  /** `given` stays its maker's: it is neither replaced nor closed here. */
  constructor(given?: Dispatcher) {
    this.#given = given;
    this.#own = keepAliveAgent();
  }

  get dispatcher(): Dispatcher {
    return this.#given ?? this.#own;
  }

  /** Later requests go over fresh connections than those of `failing`, which was the dispatcher; what is under way there ends there. */
  renew(failing: Dispatcher): void {
    const old = this.#own;
    // Requests that fail together are told so one after the other: the first has renewed for all.
    if (failing !== old) return;
    this.#own = keepAliveAgent();
    this.#old.add(old);
    old
      .close()
      .catch(() => {})
      .finally(() => this.#old.delete(old));
  }

  /** Breaks off what is under way. */
  async destroy(): Promise<void> {
    await Promise.all([this.#own, ...this.#old].map((agent) => agent.destroy().catch(() => {})));
  }
}

/** No body timeout: a long poll's deadline is the time to its headers, set per request. */
function keepAliveAgent(): Agent {
  return new Agent({ keepAliveTimeout: 30_000, bodyTimeout: 0, connect: { timeout: 5000 } });
}
