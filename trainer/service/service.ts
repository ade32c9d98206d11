import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type CallLog, sampleCall } from './call-log.ts';
import { HttpFailure } from './failures.ts';
import { parseRequestId } from './ids.ts';
import type { FutureState } from './outcome.ts';
import { Sampling } from './sampling.ts';
import { Sessions } from './sessions.ts';
import type { SamplingBackend } from './threads/sampling-backend.ts';
import type { TrainingBackend } from './threads/training-backend.ts';
import { TrainingRuns } from './training-runs.ts';

/** Sessions are looked through this often; not at the start, when their clients have not come back yet. */
const SESSION_SWEEP_MS = 3600 * 1000;

export type ServiceOptions = {
  /** Folder of everything that survives a restart. */
  readonly stateFolder: string;
  readonly baseModels: readonly string[];
  readonly training: TrainingBackend;
  readonly samplingBackend: SamplingBackend;
  /** How long a poll is held, ms; below the clients' 45 s. */
  readonly longPollMs: number;
  readonly now: () => Date;
  /** Where calls are counted; absent when nobody wants to know. */
  readonly callLog?: Pick<CallLog, 'add'> | undefined;
  /** Called when only a restart can help. */
  readonly onFatal: (reason: unknown) => void;
};

/** What the HTTP routes talk to: sessions, models in training, and sampling, all of one service. */
export class Service {
  readonly baseModels: readonly string[];
  readonly longPollMs: number;
  readonly sessions: Sessions;
  readonly runs: TrainingRuns;
  readonly sampling: Sampling;
  /** The tiny world: ids are ASCII codes, a newline ends a turn. */
  readonly tokenizerId = 'stillroom-tiny-ascii';
  readonly vocab = 128;
  readonly context = 192;
  readonly endOfTurn = 10;
  readonly #sweep: NodeJS.Timeout;

  /** Takes up the state found in the folder and goes on with unfinished training calls. */
  constructor(options: ServiceOptions) {
    const { stateFolder, baseModels, longPollMs, now, callLog, onFatal } = options;
    this.baseModels = baseModels;
    this.longPollMs = longPollMs;
    mkdirSync(stateFolder, { recursive: true });
    const sessions = new Sessions(join(stateFolder, 'sessions.log'), now);
    this.sessions = sessions;
    this.runs = new TrainingRuns(join(stateFolder, 'models'), {
      backend: options.training,
      addSampler: (id, sessionId, baseModel, path) => sessions.addSampler(id, sessionId, baseModel, path),
      now,
      callLog,
      onFatal,
    });
    this.sampling = new Sampling(
      options.samplingBackend,
      { check: (path) => this.runs.checkIsThere(path), read: (path) => this.runs.readCheckpoint(path).weights },
      (sampler, seq, job, outcome) => callLog?.add(sampleCall(now(), sampler, seq, job, outcome)),
    );
    this.#sweep = setInterval(() => this.sweepSessions(), SESSION_SWEEP_MS);
    this.#sweep.unref();
  }

  /** Throws HttpFailure 400 for a base model that is not served. */
  checkBaseModel(name: string): void {
    if (this.baseModels.includes(name)) return;
    throw new HttpFailure(400, `base_model: '${name}' is not served here; served: ${this.baseModels.join(', ')}`);
  }

  finishSession(sessionId: string, reason: string): void {
    this.sessions.finish(sessionId, reason);
    this.#unloadModelsOf(sessionId);
  }

  /** Ends sessions whose clients have gone without a word, and forgets old ones. Calls of a session's models are signs of life, too. */
  sweepSessions(): void {
    const ended = this.sessions.endIdle((sessionId) => this.runs.ofSession(sessionId).map((run) => run.lastRequestTime));
    for (const sessionId of ended) this.#unloadModelsOf(sessionId);
    this.sessions.forgetOld();
  }

  #unloadModelsOf(sessionId: string): void {
    for (const run of this.runs.ofSession(sessionId)) void run.unload(true);
  }

  /** The state of a future, after waiting up to `timeoutMs` for its end. */
  async future(requestId: string, timeoutMs: number): Promise<FutureState> {
    const name = parseRequestId(requestId);
    if (name === null) return { kind: 'unknown' };
    if (name.kind === 'unload') return this.#unloaded(name.owner, timeoutMs);
    if (name.kind === 'training') {
      const run = this.runs.find(name.owner);
      await run?.wait(name.seq, timeoutMs);
      return run?.fetch(name.seq) ?? { kind: 'unknown' };
    }
    await this.sampling.wait(requestId, timeoutMs);
    return this.sampling.future(requestId, (id) => this.sessions.hasSampler(id));
  }

  /** Also after a restart, which leaves no model in the engine. */
  async #unloaded(modelId: string, timeoutMs: number): Promise<FutureState> {
    const run = this.runs.find(modelId);
    if (run === null) return { kind: 'unknown' };
    if (run.isUnloading) await Promise.race([run.unload(), setTimeout(timeoutMs, undefined, { ref: false })]);
    return run.isUnloading ? { kind: 'pending' } : { kind: 'json', value: { type: 'unload_model', model_id: modelId } };
  }

  close(): void {
    clearInterval(this.#sweep);
    this.runs.close();
    this.sessions.close();
  }
}
