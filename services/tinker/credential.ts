import { z } from 'zod';
import { CredentialRefused } from './errors.ts';

/** Asks the service for a token; told the API key. */
export type TokenExchange = (apiKey: string) => Promise<string>;

type Token = { readonly value: string; readonly expiresAtMs: number; readonly refreshAtMs: number };

const LEAST_LIFE_MS = 60_000;
const RETRY_REFRESH_MS = 60_000;

const claimsSchema = z.object({ iat: z.number(), exp: z.number() });

/**
 * What goes into the X-API-Key header: the API key, or a short-lived token bought with it when the service wants that.
 * A token is renewed in the background halfway through its life; a failed renewal keeps the old one while it lives.
 */
export class Credential {
  readonly apiKey: string;
  #exchange: TokenExchange | null = null;
  #token: Token | null = null;
  #refreshing: Promise<string> | null = null;

  constructor(apiKey: string) {
    this.apiKey = apiKey;
  }

  /** From now on tokens are used. */
  async useTokens(exchange: TokenExchange): Promise<void> {
    this.#exchange = exchange;
    await this.#refresh();
  }

  /** @throws CredentialRefused when no token can be had */
  header(): string | Promise<string> {
    if (this.#exchange === null) return this.apiKey;
    const now = Date.now();
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

  #refresh(): Promise<string> {
    this.#refreshing ??= this.#buy().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #buy(): Promise<string> {
    const exchange = this.#exchange;
    if (exchange === null) return this.apiKey;
    try {
      this.#token = tokenOf(await exchange(this.apiKey));
    } catch (error) {
      const isUsable = this.#token !== null && this.#token.expiresAtMs > Date.now();
      if (!isUsable || error instanceof CredentialRefused) throw error;
    }
    return this.#token?.value ?? this.apiKey;
  }
}

function tokenOf(jwt: string): Token {
  const claims = claimsSchema.safeParse(payloadOf(jwt));
  if (!claims.success) throw new CredentialRefused('the service gave a token without iat and exp', { call: 'auth/token' });
  const { iat, exp } = claims.data;
  // Spread over the middle tenth of its life, so that many clients do not renew in one instant.
  const refreshAfterMs = (exp - iat) * 1000 * (0.45 + 0.1 * Math.random());
  return { value: jwt, expiresAtMs: exp * 1000, refreshAtMs: Date.now() + refreshAfterMs };
}

function payloadOf(jwt: string): unknown {
  try {
    return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8'));
  } catch {
    return null;
  }
}
