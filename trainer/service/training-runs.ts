import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { callOf } from './call-identity.ts';
import { HttpFailure, UserError } from './failures.ts';
import { CREATE_SEQ, formatPath, modelId, parsePath, parseStoredPath } from './ids.ts';
import type { CallIdentity, Operation, RunRecordOf } from './run-journal.ts';
import type { CheckpointContent, RunSurroundings } from './run-operations.ts';
import { TrainingRun } from './training-run.ts';

/** Checkpoints past their time are removed this often. */
const EXPIRY_SWEEP_MS = 60_000;

export type NewModel = {
  readonly sessionId: string;
  readonly modelSeqId: number;
  readonly baseModel: string | null;
  readonly lora: RunRecordOf<'model'>['lora'];
  readonly userMetadata: RunRecordOf<'model'>['userMetadata'];
};

/** All models of the service, each with a folder of its own under `folder`. */
export class TrainingRuns {
  readonly #folder: string;
  readonly #around: RunSurroundings;
  readonly #runs = new Map<string, TrainingRun>();
  readonly #sweep: NodeJS.Timeout;

  constructor(folder: string, around: Omit<RunSurroundings, 'readCheckpoint'>) {
    this.#folder = folder;
    this.#around = { ...around, readCheckpoint: (path) => this.readCheckpoint(path) };
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder)) {
      const run = TrainingRun.recover(join(folder, name), this.#around);
      if (run !== null) this.#runs.set(run.model.modelId, run);
    }
    this.#removeExpired();
    this.#sweep = setInterval(() => this.#removeExpired(), EXPIRY_SWEEP_MS);
    this.#sweep.unref();
  }

  /** Makes a model; a repeat with the same session and number answers the first one. */
  begin(model: NewModel, operation: Operation, call: CallIdentity = callOf(operation)): TrainingRun {
    const id = modelId(model.sessionId, model.modelSeqId);
    const known = this.#runs.get(id);
    if (known?.checkRepeat(CREATE_SEQ, call)) return known;
    const { sessionId, baseModel, lora, userMetadata } = model;
    const createdAt = this.#around.now().toISOString();
    const folder = join(this.#folder, id.replaceAll(':', '.'));
    const record = { record: 'model', modelId: id, sessionId, baseModel, lora, userMetadata, createdAt } as const;
    const run = TrainingRun.begin(folder, this.#around, record, operation, call);
    this.#runs.set(id, run);
    return run;
  }

  find(id: string): TrainingRun | null {
    return this.#runs.get(id) ?? null;
  }

  /** Throws HttpFailure 404 for an unknown model. */
  get(id: string): TrainingRun {
    const run = this.#runs.get(id);
    if (run === undefined) throw new HttpFailure(404, `no model '${id}'`);
    return run;
  }

  all(): readonly TrainingRun[] {
    return [...this.#runs.values()].sort((a, b) => b.model.createdAt.localeCompare(a.model.createdAt));
  }

  ofSession(sessionId: string): readonly TrainingRun[] {
    return this.all().filter((run) => run.model.sessionId === sessionId);
  }

  /** Throws UserError when the path names no checkpoint, or one whose time is over. */
  checkIsThere(path: string): void {
    const parsed = parseStoredPath(path);
    const run = parsed === null ? undefined : this.#runs.get(parsed.run);
    if (parsed === null || run === undefined) throw new UserError(`no checkpoint '${path}'`);
    if (run.checkpoints.get(parsed.kind, parsed.name) === null) throw new UserError(run.checkpoints.missing(parsed.kind, parsed.name));
  }

  /** Content of a checkpoint of any model. Throws UserError when the path names none. */
  readCheckpoint(path: string): CheckpointContent {
    const parsed = parseStoredPath(path);
    const run = parsed === null ? undefined : this.#runs.get(parsed.run);
    if (parsed === null || run === undefined) throw new UserError(`no checkpoint '${path}'`);
    return { model: run.model, ...run.checkpoints.read(parsed.kind, parsed.name) };
  }

  /** The model whose checkpoint a client's path names. Throws HttpFailure 404 when there is none; `field` is where the path was found. */
  ownerOf(path: string, field: string): RunRecordOf<'model'> {
    if (parsePath(path) === null) throw new HttpFailure(404, `${field}: no checkpoint '${path}'`);
    return this.ownerOfStored(path, field);
  }

  /** The same for a path that the service itself wrote down. */
  ownerOfStored(path: string, field: string): RunRecordOf<'model'> {
    const parsed = parseStoredPath(path);
    const run = parsed === null ? undefined : this.#runs.get(parsed.run);
    if (parsed === null || run === undefined) throw new HttpFailure(404, `${field}: no checkpoint '${path}'`);
    const { kind, name } = parsed;
    if (run.checkpoints.get(kind, name) === null) throw new HttpFailure(404, `${field}: ${run.checkpoints.missing(kind, name)}`);
    return run.model;
  }

  close(): void {
    clearInterval(this.#sweep);
    for (const run of this.#runs.values()) run.close();
  }

  #removeExpired(): void {
    for (const run of this.#runs.values()) run.checkpoints.removeExpired();
  }
}

/** A checkpoint as the REST answers show it. */
export function describeCheckpoint(run: TrainingRun, checkpoint: RunRecordOf<'checkpoint'>): Record<string, unknown> {
  const { kind, name, time, sizeBytes, expiresAt, userMetadata, public: isPublic } = checkpoint;
  return {
    checkpoint_id: `${kind}/${name}`,
    checkpoint_type: kind === 'weights' ? 'training' : 'sampler',
    time,
    tinker_path: formatPath({ run: run.model.modelId, kind, name }),
    size_bytes: sizeBytes,
    public: isPublic,
    expires_at: expiresAt,
    user_metadata: userMetadata,
  };
}

/** A model as the REST answers show it. */
export function describeRun(run: TrainingRun): Record<string, unknown> {
  const { modelId: id, baseModel, lora, userMetadata } = run.model;
  const newest = (kind: string): Record<string, unknown> | null => {
    const checkpoint = run.checkpoints
      .named()
      .filter((each) => each.kind === kind)
      .sort((a, b) => b.time.localeCompare(a.time))[0];
    return checkpoint === undefined ? null : describeCheckpoint(run, checkpoint);
  };
  return {
    training_run_id: id,
    base_model: baseModel ?? 'unknown',
    model_owner: 'local',
    is_lora: true,
    corrupted: run.future(0).kind === 'failed',
    lora_rank: lora?.rank ?? null,
    last_request_time: run.lastRequestTime,
    last_checkpoint: newest('weights'),
    last_sampler_checkpoint: newest('sampler_weights'),
    user_metadata: userMetadata,
  };
}
