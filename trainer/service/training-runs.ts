import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { HttpFailure, UserError } from './failures.ts';
import { formatPath, modelId, parsePath } from './ids.ts';
import type { Operation, RunRecordOf } from './run-journal.ts';
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
  begin(model: NewModel, operation: Operation): TrainingRun {
    const id = modelId(model.sessionId, model.modelSeqId);
    const known = this.#runs.get(id);
    if (known !== undefined) return known;
    const { sessionId, baseModel, lora, userMetadata } = model;
    const createdAt = this.#around.now().toISOString();
    const folder = join(this.#folder, id.replaceAll(':', '.'));
    const record = { record: 'model', modelId: id, sessionId, baseModel, lora, userMetadata, createdAt } as const;
    const run = TrainingRun.begin(folder, this.#around, record, operation);
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

  /** Content of a checkpoint of any model. Throws UserError when the path names none. */
  readCheckpoint(path: string): CheckpointContent {
    const parsed = parsePath(path);
    const run = parsed === null ? undefined : this.#runs.get(parsed.run);
    if (parsed === null || run === undefined) throw new UserError(`${path}: no such checkpoint`);
    return { model: run.model, ...run.readCheckpoint(parsed.kind, parsed.name) };
  }

  /** The model a path belongs to, when the path names a checkpoint that exists; null otherwise. */
  ownerOf(path: string): RunRecordOf<'model'> | null {
    const parsed = parsePath(path);
    const run = parsed === null ? undefined : this.#runs.get(parsed.run);
    return parsed === null || run === undefined || run.checkpoint(parsed.kind, parsed.name) === null ? null : run.model;
  }

  close(): void {
    clearInterval(this.#sweep);
    for (const run of this.#runs.values()) run.close();
  }

  #removeExpired(): void {
    const now = this.#around.now().getTime();
    for (const run of this.#runs.values()) {
      for (const { kind, name, expiresAt } of run.checkpoints) {
        if (expiresAt !== null && Date.parse(expiresAt) <= now) run.removeCheckpoint(kind, name);
      }
    }
  }
}

/** A checkpoint as the REST answers show it. */
export function describeCheckpoint(run: TrainingRun, checkpoint: RunRecordOf<'checkpoint'>): Record<string, unknown> {
  const { kind, name, time, sizeBytes, expiresAt, userMetadata } = checkpoint;
  return {
    checkpoint_id: `${kind}/${name}`,
    checkpoint_type: kind === 'weights' ? 'training' : 'sampler',
    time,
    tinker_path: formatPath({ run: run.model.modelId, kind, name }),
    size_bytes: sizeBytes,
    public: false,
    expires_at: expiresAt,
    user_metadata: userMetadata,
  };
}

/** A model as the REST answers show it. */
export function describeRun(run: TrainingRun): Record<string, unknown> {
  const { modelId: id, baseModel, lora, userMetadata } = run.model;
  const newest = (kind: string): Record<string, unknown> | null => {
    const checkpoint = run.checkpoints.filter((each) => each.kind === kind).sort((a, b) => b.time.localeCompare(a.time))[0];
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
