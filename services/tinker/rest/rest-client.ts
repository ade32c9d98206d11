import { Caller } from '../http/caller.ts';
import { readFlags } from '../session/service-flags.ts';
import { type ConnectionOptions, resolveConnection } from '../settings.ts';
import { Rest } from './rest.ts';

/** For operators: looks at and tidies what an account has on the service, without opening a session. */
export class RestClient extends Rest implements AsyncDisposable {
  readonly #release: () => Promise<void>;

  private constructor(caller: Caller) {
    super(caller);
    this.#release = () => caller.close();
  }

  /** @throws SettingMissing, CredentialRefused, RetryLater */
  static async connect(options: ConnectionOptions = {}): Promise<RestClient> {
    const caller = new Caller(resolveConnection(options));
    try {
      // On the way the key is traded for a token where the service wants one.
      await readFlags(caller);
      return new RestClient(caller);
    } catch (error) {
      await caller.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
