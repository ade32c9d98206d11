import { Agent, type Dispatcher } from 'undici';
import { type QueueState, SettingMissing } from './errors.ts';
import type { RetryLimits } from './retry.ts';

/** The version of the official client whose protocol is spoken; services switch features by it. */
const PROTOCOL_VERSION = '0.38.0';

export type WaitReport = {
  readonly call: string;
  /** How long the call has been waiting, ms. */
  readonly waitedMs: number;
  readonly queueState: QueueState | null;
  /** The service's words, when it gave any. */
  readonly reason: string | null;
};

export type ConnectionOptions = {
  /** Without `/api/v1`. Default: TINKER_BASE_URL. */
  readonly baseUrl?: string;
  /** Default: TINKER_API_KEY. */
  readonly apiKey?: string;
  /** Give up a call after this long with nothing but connection failures or 5xx answers. Default 120 000. A restarted server is survived within it. */
  readonly noProgressMs?: number;
  /** Give up a call that waits in the service's queue after this long without any call of this client completing. Default 7 200 000. */
  readonly stalledMs?: number;
  /** Longest time to one answer; a poll is answered by the service within 45 s. Default 60 000. */
  readonly requestTimeoutMs?: number;
  /** Told whenever a call waits: for heartbeats and for showing the queue. It must not throw. */
  readonly onWait?: (report: WaitReport) => void;
  /** An undici dispatcher, e.g. a proxy agent; it stays the caller's to close. Default: an own keep-alive agent. */
  readonly dispatcher?: Dispatcher;
};

export type Connection = RetryLimits & {
  /** Ends with `/api/v1/`. */
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly requestTimeoutMs: number;
  readonly protocolVersion: string;
  readonly onWait: (report: WaitReport) => void;
  readonly dispatcher: Dispatcher;
  /** Closes the agent when this client made it. */
  readonly release: () => Promise<void>;
};

/** @throws SettingMissing naming the setting */
export function resolveConnection(options: ConnectionOptions): Connection {
  const baseUrl = setting('TINKER_BASE_URL', options.baseUrl, 'the address of a Tinker-compatible service');
  if (!URL.canParse(baseUrl)) throw new SettingMissing(`TINKER_BASE_URL "${baseUrl}" is no URL`, { call: 'connect' });
  const own = options.dispatcher === undefined ? keepAliveAgent() : null;
  return {
    apiUrl: `${baseUrl.replace(/\/+$/, '')}/api/v1/`,
    apiKey: setting('TINKER_API_KEY', options.apiKey, 'a key of the service'),
    noProgressMs: options.noProgressMs ?? 120_000,
    stalledMs: options.stalledMs ?? 7_200_000,
    requestTimeoutMs: options.requestTimeoutMs ?? 60_000,
    protocolVersion: PROTOCOL_VERSION,
    onWait: options.onWait ?? (() => {}),
    dispatcher: options.dispatcher ?? own ?? keepAliveAgent(),
    release: async () => own?.destroy(),
  };
}

/** An empty value counts as unset, as in the official client. */
function setting(variable: string, given: string | undefined, what: string): string {
  const value = given || process.env[variable];
  if (!value) throw new SettingMissing(`no ${variable}: set it to ${what}`, { call: 'connect' });
  return value;
}

/** No body timeout: a long poll's deadline is the time to its headers, set per request. */
function keepAliveAgent(): Agent {
  return new Agent({ keepAliveTimeout: 30_000, bodyTimeout: 0, connect: { timeout: 5000 } });
}
