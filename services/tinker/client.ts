import { BadRequest, SessionLost } from './errors.ts';
import { sessionSchema } from './futures/answers.ts';
import { Caller } from './http/caller.ts';
import type { StatePath } from './paths.ts';
import type { Capabilities } from './rest/capabilities.ts';
import type { Checkpoints } from './rest/checkpoints.ts';
import { Rest } from './rest/rest.ts';
import { randomClone, SampleDispatch } from './sampling/sample-dispatch.ts';
import { openSamplingSession, Sampler, type SamplerSource } from './sampling/sampler.ts';
import { Heartbeat } from './session/heartbeat.ts';
import { readFlags, type ServiceFlags } from './session/service-flags.ts';
import { createSessionBody, type SessionOptions } from './session/session-options.ts';
import { type ConnectionOptions, resolveConnection } from './settings.ts';
import {
  type CreatedModel,
  createModel,
  createModelFromState,
  type FromStateOptions,
  getInfo,
  type ModelInfo,
  type ModelOptions,
} from './training/models.ts';
import { PendingCall, type SavedCall } from './training/pending-call.ts';
import { TrainingClient, type TrainingContext } from './training/training.ts';
import type { TrainingBodies } from './training/training-body.ts';
import type { CallKind } from './training/training-results.ts';

export type ClientOptions = ConnectionOptions & {
  /** How batches are sent: default `protobuf`; `json` for servers of before it. */
  readonly trainingBodies?: TrainingBodies;
};
export type ConnectOptions = ClientOptions & SessionOptions;

export type FinishReason = 'success' | 'errored' | 'interrupted';

const FINISH_TIMEOUT_MS = 5000;
/** An attached client numbers what it opens from here on at random: it cannot know what the session's first client has used. */
const ATTACHED_FIRST_SEQ_ID = 1_000_000;

/** A session with a Tinker-compatible service. */
export class TinkerClient implements AsyncDisposable {
  readonly sessionId: string;
  /** Everything that needs no session: runs, checkpoints, sessions, usage. */
  readonly rest: Rest;
  readonly #caller: Caller;
  readonly #flags: ServiceFlags;
  readonly #heartbeat: Heartbeat;
  readonly #isOwner: boolean;
  #nextModelSeqId: number;
  #nextSamplingSeqId: number;

  private constructor(caller: Caller, flags: ServiceFlags, sessionId: string, isOwner: boolean) {
    this.sessionId = sessionId;
    this.rest = new Rest(caller);
    this.#caller = caller;
    this.#flags = flags;
    this.#isOwner = isOwner;
    this.#heartbeat = new Heartbeat(caller);
    this.#heartbeat.keepAlive(sessionId);
    this.#nextModelSeqId = isOwner ? 0 : attachedSeqId();
    this.#nextSamplingSeqId = isOwner ? 0 : attachedSeqId();
  }

  /**
   * Opens a new session. A service that is not up yet is waited for (`noProgressMs`).
   * @throws SettingMissing, CredentialRefused, RetryLater
   */
  static async connect(options: ConnectOptions = {}): Promise<TinkerClient> {
    return opened(options, async (caller, flags) => {
      const body = createSessionBody(options, caller.connection.protocolVersion);
      const call = { method: 'POST', path: 'create_session', body, phase: 'submit', subject: 'other' } as const;
      const session = await caller.json(call, sessionSchema);
      const { error_message: refusal, warning_message: warning, info_message: info } = session;
      if (refusal) throw new BadRequest(caller.scrub(refusal), { call: 'create_session', detail: caller.scrub(refusal) });
      for (const text of [warning, info]) caller.notice(text);
      return new TinkerClient(caller, flags, session.session_id, true);
    });
  }

  /**
   * Joins a session that another process opened: keeps it alive too, and `close` leaves it open.
   * @throws SessionLost when the service says that the session is over (410), or does not know it (a 404 that names it). Any other
   * failure of the first heartbeat is not told: a 404 without the id comes from servers that have no heartbeats, whose first real
   * call shows whether the session is there
   */
  static async attach(options: ClientOptions & { readonly sessionId: string }): Promise<TinkerClient> {
    return opened(options, async (caller, flags) => {
      const client = new TinkerClient(caller, flags, options.sessionId, false);
      await client.#heartbeat.beat(options.sessionId).catch((error) => {
        if (error instanceof SessionLost && (error.status === 410 || error.detail?.includes(options.sessionId))) throw error;
      });
      return client;
    });
  }

  get checkpoints(): Checkpoints {
    return this.rest.checkpoints;
  }

  capabilities(): Promise<Capabilities> {
    return this.rest.capabilities();
  }

  /** @throws SessionLost, or BadRequest when the weights are unknown */
  async sampler(source: SamplerSource, options: { readonly version?: string } = {}): Promise<Sampler> {
    const open = () => this.#inSession(() => openSamplingSession(this.#caller, this.sessionId, this.#nextSamplingSeqId++, source));
    const version = options.version ?? ('baseModel' in source ? source.baseModel : source.samplerPath);
    return this.#samplerOf(version, await open(), open);
  }

  /** @throws SessionLost, or BadRequest when the base model is unknown */
  async createModel(options: ModelOptions): Promise<CreatedModel> {
    const seqId = options.modelSeqId ?? this.#nextModelSeqId++;
    return this.#inSession(() => createModel(this.#caller, this.sessionId, seqId, options));
  }

  /** A model that starts from saved state, with `optimizer` from its moments too. What is left out is as in the saved model. */
  async createModelFromState(path: StatePath, options: FromStateOptions): Promise<CreatedModel> {
    const seqId = options.modelSeqId ?? this.#nextModelSeqId++;
    return this.#inSession(() => createModelFromState(this.#caller, this.rest.weights, this.sessionId, seqId, path, options));
  }

  /** Nothing is sent. `sessionId`: the model's session when it is not this one; it is then kept alive too. */
  training(modelId: string, options: { readonly nextSeqId: number; readonly sessionId?: string }): TrainingClient {
    if (options.sessionId !== undefined) this.#heartbeat.keepAlive(options.sessionId);
    this.#heartbeat.assertAlive(options.sessionId ?? this.sessionId);
    return new TrainingClient(this.#trainingContext(modelId, options.sessionId), modelId, options.nextSeqId);
  }

  /**
   * To wait for a training call that was submitted before, in whatever process. Nothing is sent until `result`.
   * `sessionId`: the model's session when it is not this one; it is then kept alive too.
   */
  resume<Kind extends CallKind>(saved: SavedCall<Kind>, options: { readonly sessionId?: string } = {}): PendingCall<Kind> {
    if (options.sessionId !== undefined) this.#heartbeat.keepAlive(options.sessionId);
    return new PendingCall(saved, null, this.#trainingContext(saved.modelId, options.sessionId), () => {});
  }

  /** Stops keeping alive the session of another client, once nothing here uses its models any more. */
  release(sessionId: string): void {
    if (sessionId !== this.sessionId) this.#heartbeat.release(sessionId);
  }

  getInfo(modelId: string): Promise<ModelInfo> {
    return getInfo(this.#caller, modelId);
  }

  /** Ends the session if this client opened it. The service ends silent sessions by itself, so failures here are ignored. */
  async close(reason: FinishReason = 'success', detail: string | null = null): Promise<void> {
    if (this.#isOwner) await this.endSession(this.sessionId, reason, detail);
    await this.#caller.close();
  }

  /** Ends this client alone: its session is left to those that have joined it, and ends when nobody keeps it alive. */
  async leave(): Promise<void> {
    await this.#caller.close();
  }

  /** Ends a session, whoever opened it. Failures are ignored, as with `close`. */
  async endSession(sessionId: string, reason: FinishReason = 'success', detail: string | null = null): Promise<void> {
    this.#heartbeat.release(sessionId);
    const body = JSON.stringify({ reason: { type: reason }, detail });
    const path = `sessions/${sessionId}/finish`;
    // Also for a credential that does not come.
    const timeoutMs = Math.min(FINISH_TIMEOUT_MS, this.#caller.connection.requestTimeoutMs);
    await this.#caller
      .send({ method: 'POST', path, body, phase: 'once', subject: 'session', signal: AbortSignal.timeout(timeoutMs) })
      .catch(() => {});
  }

  /** Nothing is sent. @throws SessionLost when the service has said that this client's session is over */
  assertAlive(): void {
    this.#heartbeat.assertAlive(this.sessionId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #samplerOf(version: string, id: string, open: () => Promise<string>, clone = 0): Sampler {
    return new Sampler(version, id, new SampleDispatch(this.#caller, this.#flags.sampling, id, open, clone));
  }

  #trainingContext(modelId: string, sessionId = this.sessionId): TrainingContext {
    // Of another session this client does not know which numbers are taken.
    let foreign = attachedSeqId();
    return {
      caller: this.#caller,
      chunks: this.#flags.chunks,
      takeSamplingSeqId: () => (sessionId === this.sessionId ? this.#nextSamplingSeqId++ : foreign++),
      samplerOf: (id, isFirst) =>
        this.#samplerOf(`${modelId} as ${id}`, id, () => Promise.reject(ephemeralLost(id)), isFirst ? 0 : randomClone()),
    };
  }

  /** Servers answer 404 both for a lost session and for unknown weights: a heartbeat tells which. */
  async #inSession<T>(work: () => Promise<T>): Promise<T> {
    this.#heartbeat.assertAlive(this.sessionId);
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SessionLost) || error.status !== 404) throw error;
      await this.#heartbeat.beat(this.sessionId);
      throw new BadRequest(`the service does not know what the request names (404: ${error.detail})`, { ...error, cause: error });
    }
  }
}

async function opened(options: ClientOptions, open: (caller: Caller, flags: ServiceFlags) => Promise<TinkerClient>): Promise<TinkerClient> {
  const caller = new Caller(resolveConnection(options));
  try {
    const { trainingBodies: bodies = 'protobuf' } = options;
    const flags = await readFlags(caller);
    return await open(caller, { ...flags, chunks: { ...flags.chunks, bodies } });
  } catch (error) {
    await caller.close();
    throw error;
  }
}

function ephemeralLost(samplingSessionId: string): SessionLost {
  const message = `the service lost ${samplingSessionId}, whose weights were not saved under a name: save them again`;
  return new SessionLost(message, { call: 'asample' });
}

function attachedSeqId(): number {
  return ATTACHED_FIRST_SEQ_ID + Math.floor(Math.random() * 1_000_000_000);
}
