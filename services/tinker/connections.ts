import { Agent, type Dispatcher } from 'undici';

/** The connections to the service. */
export class Connections {
  readonly #given: Dispatcher | undefined;
  #own: Agent;

  /** `given` stays its maker's: it is neither replaced nor closed here. */
  constructor(given?: Dispatcher) {
    this.#given = given;
    this.#own = keepAliveAgent();
  }

  get dispatcher(): Dispatcher {
    return this.#given ?? this.#own;
  }

  /** Later requests go over fresh connections; those under way end on theirs. */
  renew(): void {
    const old = this.#own;
    this.#own = keepAliveAgent();
    old.close().catch(() => {});
  }

  async destroy(): Promise<void> {
    await this.#own.destroy();
  }
}

/** No body timeout: a long poll's deadline is the time to its headers, set per request. */
function keepAliveAgent(): Agent {
  return new Agent({ keepAliveTimeout: 30_000, bodyTimeout: 0, connect: { timeout: 5000 } });
}
