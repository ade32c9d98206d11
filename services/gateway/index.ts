import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { TrialId } from '../../core/ids.ts';
import type { TrialRecord } from './record.ts';
import { gatewayApp, nodeServer } from './server.ts';
import { TrialSession } from './session.ts';
import type { TrialOptions } from './trial-options.ts';

export type { CallLink, FragmentCause } from './conversation.ts';
export { SamplerBusy, SamplerOverflow, SamplerUnavailable, SamplerUnpaid } from './errors.ts';
export { PROOF_LIMITS, type ProofInput, type ProofResult, proveTokens } from './proof.ts';
export { otherThanGateway } from './public-url.ts';
export type { CallNotice, ModelFailure, TrialRecord } from './record.ts';
export type { ChatMessage, ChatRenderer, RendererFingerprint } from './renderer.ts';
export { rendererFor, UnknownRendererError } from './renderers/index.ts';
export { checkSample } from './sample-check.ts';
export type { SampleRequest, SampleResult, TokenSampler } from './token-sampler.ts';
export type { SpendLimit, TrialOptions } from './trial-options.ts';

const DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024;
const DEFAULT_PING_MS = 10_000;
const DEFAULT_MAX_CONNECTIONS = 1024;
const DEFAULT_SLOW_REQUEST_MS = 120_000;
/** How many ended trials are remembered, to tell a late agent "ended" rather than "unknown". */
const REMEMBERED_TRIALS = 10_000;

export type GatewayOptions = {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Where agents reach this gateway, if not at `http://host:port`. A path in it may or may not be left out by the proxy that serves it. */
  readonly publicUrl?: string;
  /** Largest request body. Default 16 MiB. */
  readonly maxBodyBytes?: number;
  /** How long a streaming client waits before it gets the first sign of life. Default 10 s. */
  readonly pingMs?: number;
  /** Connections open at once; more are closed as they come. Default 1024. */
  readonly maxConnections?: number;
  /** A request that is not here as a whole after this time is cut off; its head has an eighth of it. Default 2 min. */
  readonly slowRequestMs?: number;
};

/**
 * A trial's door to the model, open until disposed, which waits for calls that its sampler does not break off. `record()` works after that too.
 */
export interface GatewaySession extends AsyncDisposable {
  /** Base URL for an OpenAI client: `<url>/t/<trialId>/v1`. */
  readonly apiBase: string;
  /** The same for a sandbox without network, in which the gateway's port is at 127.0.0.1 while its agent runs. */
  readonly sandboxApiBase: string;
  /** 192 random bits, good for this trial only and dead when the session ends. */
  readonly apiKey: string;
  record(): TrialRecord;
}

export interface Gateway extends AsyncDisposable {
  /** Where agents reach it: the public URL, if there is one. */
  readonly url: string;
  /** As given, without slashes at its end. */
  readonly publicUrl?: string;
  /** The port that it listens on. */
  readonly port: number;
  /** Where this machine's own processes reach it: `http://HOST:PORT`. */
  readonly localUrl: string;
  /** @throws Error when the trial is open already, or a limit is not a positive number. */
  open(trial: TrialOptions): GatewaySession;
  /** Ends every session and all connections. */
  close(): Promise<void>;
}

/** Starts the OpenAI-compatible endpoint of a rollout worker. @throws when the port is taken. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const open = new Map<string, TrialSession>();
  const ended = new Set<string>();
  const publicUrl = options.publicUrl?.replace(/\/+$/, '');
  const limits = {
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    pingMs: options.pingMs ?? DEFAULT_PING_MS,
    maxConnections: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
    slowRequestMs: options.slowRequestMs ?? DEFAULT_SLOW_REQUEST_MS,
    basePath: publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, ''),
  };
  const app = gatewayApp((trialId) => open.get(trialId) ?? (ended.has(trialId) ? 'ended' : undefined), limits);
  const server = nodeServer(app, limits);
  server.listen(options.port, options.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const localUrl = `http://${options.host === '0.0.0.0' ? '127.0.0.1' : options.host}:${port}`;
  const url = publicUrl ?? `http://${options.host}:${port}`;

  const end = (trialId: TrialId, session: TrialSession) => {
    if (open.get(trialId) !== session) return;
    session.end();
    open.delete(trialId);
    ended.add(trialId);
    const [oldest] = ended;
    if (oldest !== undefined && ended.size > REMEMBERED_TRIALS) ended.delete(oldest);
  };
  const close = async () => {
    for (const [trialId, session] of open) end(trialId as TrialId, session);
    const closed = once(server, 'close');
    server.close();
    if ('closeAllConnections' in server) server.closeAllConnections();
    await closed;
  };
  return {
    url,
    ...(publicUrl === undefined ? {} : { publicUrl }),
    port,
    localUrl,
    open(trial) {
      if (open.has(trial.trialId)) throw new Error(`trial ${trial.trialId} is open already; end its session before opening it again`);
      checkLimits(trial);
      const session = new TrialSession(trial);
      open.set(trial.trialId, session);
      ended.delete(trial.trialId);
      const path = `/t/${encodeURIComponent(trial.trialId)}/v1`;
      return {
        apiBase: `${url}${path}`,
        sandboxApiBase: `http://127.0.0.1:${port}${path}`,
        apiKey: session.apiKey,
        record: () => session.record(),
        [Symbol.asyncDispose]: async () => {
          end(trial.trialId, session);
          await session.quiet();
        },
      };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function checkLimits({
  contextLimitTokens,
  maxTokensPerCall,
  maxCalls = 1,
  maxSampledTokens = 1,
  maxWallMs = 1,
  maxHistoryBytes = 1,
  temperature,
}: TrialOptions): void {
  const counts = { contextLimitTokens, maxTokensPerCall, maxCalls, maxSampledTokens, maxWallMs, maxHistoryBytes };
  for (const [name, value] of Object.entries(counts))
    if (!Number.isInteger(value) || value < 1) throw new Error(`${name} must be a positive whole number; got ${value}`);
  if (!Number.isFinite(temperature) || temperature < 0) throw new Error(`temperature must be 0 or more; got ${temperature}`);
}
