import type { Dispatcher } from 'undici';
import { assertHeaderValue, type CredentialSources, findCredentials } from './credentials/credential-sources.ts';
import { type QueueState, SettingMissing } from './errors.ts';
import { type Clock, systemClock } from './http/clock.ts';
import { Connections } from './http/connections.ts';
import type { RetryLimits } from './http/retry.ts';

/** The version of the official client whose protocol is spoken; services switch features by it. */
const PROTOCOL_VERSION = '0.38.0';

export type WaitReport = {
  /** Of a call, its path or result type, e.g. `asample`; `session_heartbeat` when a session could not be kept alive for long. */
  readonly call: string;
  /** How long the call has been waiting, ms. */
  readonly waitedMs: number;
  readonly queueState: QueueState | null;
  /** The service's words when it gave any, or why there was no answer. */
  readonly reason: string | null;
  /** HTTP status of the latest answer, 408 where the work is not done yet; null when there was no answer. */
  readonly status: number | null;
  /** When the service is asked again, ms from now. */
  readonly nextTryMs: number;
};

export type ConnectionOptions = {
  /** Without `/api/v1`. Default: TINKER_BASE_URL. */
  readonly baseUrl?: string;
  /** Default: TINKER_API_KEY; else the credential command, else the default of `~/.tinker/credentials.json`. */
  readonly apiKey?: string;
  /** A shell command that prints a credential, run for every use. Default: TINKER_CREDENTIAL_CMD. */
  readonly credentialCmd?: string;
  /**
   * Give up a call after this long without a sign of life: nothing but connection failures and 5xx answers. Default
   * 120 000. A restarted server is survived within it. Less than 20 000 misjudges services that hold a poll for
   * minutes: the heartbeats between come every 10 s.
   */
  readonly noProgressMs?: number;
  /**
   * Give up a call that waits in the queue of a service that answers, after this long without any call of this client
   * completing. Default 86 400 000 (a day): a queue of hours is shown through `onWait`, not failed.
   */
  readonly stalledMs?: number;
  /** Longest time to one answer. Default 60 000; a poll is answered by the service within 45 s. */
  readonly requestTimeoutMs?: number;
  /** Told whenever a call waits: for heartbeats and for showing the queue. It must not throw. */
  readonly onWait?: (report: WaitReport) => void;
  /** Told once of every notice of the service to its user: about the session, or that this client is out of date. Default: nobody. */
  readonly onNotice?: (text: string) => void;
  /** An undici dispatcher, e.g. a proxy agent; it stays the caller's to close. Default: an own keep-alive agent. */
  readonly dispatcher?: Dispatcher;
  /** For tests: another measure of time. */
  readonly clock?: Clock;
};

export type Connection = RetryLimits & {
  /** Ends with `/api/v1/`. */
  readonly apiUrl: string;
  readonly credentials: CredentialSources;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** What must not appear in any text, beside the credentials. */
  readonly secrets: readonly string[];
  readonly requestTimeoutMs: number;
  readonly protocolVersion: string;
  readonly onWait: (report: WaitReport) => void;
  readonly onNotice: (text: string) => void;
  readonly connections: Connections;
  readonly clock: Clock;
};

/** Says before anything begins whether the environment names a service and a credential for it. @throws SettingMissing or CredentialRefused naming the setting */
export function requireSettings(): void {
  baseUrlOf({});
  findCredentials({});
}

function baseUrlOf(options: Pick<ConnectionOptions, 'baseUrl'>): string {
  // An empty value counts as unset, as in the official client.
  const baseUrl = options.baseUrl || process.env.TINKER_BASE_URL;
  if (!baseUrl) throw new SettingMissing('no TINKER_BASE_URL: set it to the address of a Tinker-compatible service', { call: 'connect' });
  if (!URL.canParse(baseUrl)) throw new SettingMissing(`TINKER_BASE_URL "${baseUrl}" is no URL`, { call: 'connect' });
  return baseUrl;
}

/** @throws SettingMissing or CredentialRefused naming the setting */
export function resolveConnection(options: ConnectionOptions): Connection {
  const baseUrl = baseUrlOf(options);
  const { CLOUDFLARE_ACCESS_CLIENT_ID: accessId, CLOUDFLARE_ACCESS_CLIENT_SECRET: accessSecret } = process.env;
  if (accessId) assertHeaderValue('CLOUDFLARE_ACCESS_CLIENT_ID', accessId);
  if (accessSecret) assertHeaderValue('CLOUDFLARE_ACCESS_CLIENT_SECRET', accessSecret);
  return {
    apiUrl: `${baseUrl.replace(/\/+$/, '')}/api/v1/`,
    credentials: findCredentials(options),
    headers: { ...(accessId && { 'cf-access-client-id': accessId }), ...(accessSecret && { 'cf-access-client-secret': accessSecret }) },
    secrets: accessSecret ? [accessSecret] : [],
    noProgressMs: options.noProgressMs ?? 120_000,
    stalledMs: options.stalledMs ?? 86_400_000,
    requestTimeoutMs: options.requestTimeoutMs ?? 60_000,
    protocolVersion: PROTOCOL_VERSION,
    onWait: options.onWait ?? (() => {}),
    onNotice: options.onNotice ?? (() => {}),
    connections: new Connections(options.dispatcher),
    clock: options.clock ?? systemClock,
  };
}
