import { CredentialRefused } from '../errors.ts';
import type { Clock } from '../http/clock.ts';
import { assertHeaderValue, type CredentialSource, type CredentialSources } from './credential-sources.ts';
import { claimsOf, looksLikeJwt } from './jwt.ts';

/** Asks the service for a token; told the raw credential, and whether there is none to fall back to. */
export type TokenExchange = (credential: string, isNeeded: boolean) => Promise<string>;

type Token = { readonly value: string; readonly expiresAtMs: number; readonly refreshAtMs: number };

const LEAST_LIFE_MS = 60_000;
const RETRY_REFRESH_MS = 60_000;
/** So many of the latest secrets are looked for in the service's texts: a command may print another one for every request. */
const REMEMBERED_SECRETS = 1000;

/**
 * What goes into the X-API-Key header: the credential as it is, or a short-lived token bought with it when the service
 * wants that. A token is renewed in the background halfway through its life; a failed renewal keeps the old one while it lives.
 */
export class Credential {
  readonly #sources: CredentialSources;
  readonly #clock: Clock;
  readonly #secrets = new Set<string>();
  #source: CredentialSource;
  #exchange: TokenExchange | null = null;
  #token: Token | null = null;
  #refreshing: Promise<string> | null = null;

  constructor(sources: CredentialSources, clock: Clock) {
    this.#sources = sources;
    this.#source = sources.main;
    this.#clock = clock;
  }

  /** What must not appear in any text. */
  get secrets(): Iterable<string> {
    return this.#secrets;
  }

  /** The setting to look at when the service refuses. */
  get setting(): string {
    return this.#source.setting;
  }

  /** Ends what is still being asked for a credential. */
  stop(): void {
    for (const source of [this.#sources.main, this.#sources.command]) source?.stop?.();
  }

  /** From now on tokens are used. `fromCommand`: they are sold for the credential command's credential only, or for a token in its place. */
  async useTokens(exchange: TokenExchange, { fromCommand }: { readonly fromCommand: boolean }): Promise<void> {
    if (fromCommand && !looksLikeJwt(await this.#raw())) this.#source = this.#commandOrRefuse();
    this.#exchange = exchange;
    await this.#refresh();
  }

  /** @throws CredentialRefused when no credential can be had */
  header(): string | Promise<string> {
    if (this.#exchange === null) return this.#raw();
    const now = this.#clock.epochMs();
    const token = this.#token;
    if (token === null || token.expiresAtMs - now <= LEAST_LIFE_MS) return this.#refresh();
    if (now >= token.refreshAtMs) {
      this.#token = { ...token, refreshAtMs: now + RETRY_REFRESH_MS };
      this.#refresh().catch(() => {});
    }
    return token.value;
  }

  /** The service refused this token. Returns whether the request may be sent again with another one. */
  async replace(rejected: string): Promise<boolean> {
    if (this.#exchange === null) return false;
    // Concurrent requests are refused together; the first of them renews for all.
    if (this.#token?.value === rejected) {
      this.#token = null;
      await this.#refresh();
    }
    return true;
  }

  async #raw(): Promise<string> {
    const credential = this.#remembered(await this.#source.get());
    if (!looksLikeJwt(credential)) return credential;
    const expiresAtMs = (claimsOf(credential)?.exp ?? Number.POSITIVE_INFINITY) * 1000;
    if (expiresAtMs > this.#clock.epochMs()) return credential;
    throw new CredentialRefused(`the token of ${this.setting} expired ${timeOf(expiresAtMs)}: get a new one`, { call: 'connect' });
  }

  #commandOrRefuse(): CredentialSource {
    const { command } = this.#sources;
    if (command !== null) return command;
    throw new CredentialRefused('the service takes only credentials of a command: set TINKER_CREDENTIAL_CMD', { call: 'client/config' });
  }

  #refresh(): Promise<string> {
    this.#refreshing ??= this.#buy().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #buy(): Promise<string> {
    const exchange = this.#exchange;
    if (exchange === null) return this.#raw();
    try {
      const token = this.#tokenOf(await exchange(await this.#raw(), !this.#isAlive()));
      this.#token = token;
      return token.value;
    } catch (error) {
      const isJudged = error instanceof CredentialRefused && error.status !== null;
      if (this.#token === null || !this.#isAlive() || isJudged) throw error;
      return this.#token.value;
    }
  }

  #isAlive(): boolean {
    return this.#token !== null && this.#token.expiresAtMs > this.#clock.epochMs();
  }

  #tokenOf(jwt: string): Token {
    const claims = claimsOf(this.#remembered(jwt));
    if (claims?.iat === undefined || claims.exp === undefined) {
      throw new CredentialRefused('the service gave a token without iat and exp', { call: 'auth/token' });
    }
    assertHeaderValue('auth/token', jwt);
    const { iat, exp } = claims;
    // Spread over the middle tenth of its life, so that many clients do not renew in one instant.
    const refreshAfterMs = Math.max((exp - iat) * 1000 * (0.45 + 0.1 * Math.random()), LEAST_LIFE_MS);
    return { value: jwt, expiresAtMs: exp * 1000, refreshAtMs: this.#clock.epochMs() + refreshAfterMs };
  }

  /** It must not appear in any text from here on. */
  hide(secret: string): void {
    this.#remembered(secret);
  }

  #remembered(secret: string): string {
    this.#secrets.delete(secret);
    this.#secrets.add(secret);
    const [oldest] = this.#secrets;
    if (this.#secrets.size > REMEMBERED_SECRETS && oldest !== undefined) this.#secrets.delete(oldest);
    return secret;
  }
}

/** A claim may name a time that no calendar has. */
function timeOf(epochMs: number): string {
  const date = new Date(epochMs);
  return Number.isNaN(date.getTime()) ? 'long ago' : `at ${date.toISOString()}`;
}
