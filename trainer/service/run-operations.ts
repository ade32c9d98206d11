import type { CallLog } from './call-log.ts';
import { type CheckpointFiles, fileStem, sha256 } from './checkpoint-files.ts';
import { UserError } from './failures.ts';
import { type CheckpointKind, formatPath, isCheckpointName } from './ids.ts';
import type { Outcome } from './outcome.ts';
import type { Operation, OperationOf, RunRecord, RunRecordOf } from './run-journal.ts';
import type { ModelState, TrainingBackend } from './threads/training-backend.ts';
import type { TrainingRun } from './training-run.ts';

/** What a call came to. `state` is set when the model has changed; `records` go to the journal before the result. */
export type Execution = { readonly outcome: Outcome; readonly state: ModelState | null; readonly records: readonly RunRecord[] };

export type CheckpointContent = {
  readonly model: RunRecordOf<'model'>;
  readonly weights: Uint8Array;
  readonly optimizer: Uint8Array | null;
};

/** What a model needs from the rest of the service. */
export type RunSurroundings = {
  readonly backend: TrainingBackend;
  /** Content of any model's checkpoint; throws UserError when there is none. */
  readonly readCheckpoint: (path: string) => CheckpointContent;
  /** Makes a sampling session known, durably; a repeat changes nothing. */
  readonly addSampler: (samplerId: string, sessionId: string, baseModel: string, modelPath: string) => void;
  readonly now: () => Date;
  /** Where calls are counted; absent when nobody wants to know. */
  readonly callLog?: Pick<CallLog, 'add'> | undefined;
  /** Something that only a restart can mend, e.g. the journal cannot be written. */
  readonly onFatal: (reason: unknown) => void;
};

/** One call to carry out. `body` reads a forward_backward's bytes, `storedState` the model's newest stored state. */
type Job<Op extends Operation> = {
  readonly run: TrainingRun;
  readonly seq: number;
  readonly operation: Op;
  readonly files: CheckpointFiles;
  readonly body: () => Uint8Array;
  readonly around: RunSurroundings;
  readonly storedState: () => ModelState;
};

/** Carries out one call of a model that is in the engine. Doing it again from the same state has the same effect. */
export async function execute(job: Job<Operation>): Promise<Execution> {
  const { operation, run, around } = job;
  const { modelId } = run.model;
  switch (operation.op) {
    case 'create':
      return create(run, around);
    case 'create_from':
      return load({ ...job, operation }, { type: 'load_weights', model_id: modelId, path: operation.path });
    case 'load_weights':
      return load({ ...job, operation }, { type: 'load_weights', model_id: modelId, path: operation.path });
    case 'forward_backward':
      return unchanged({ kind: 'proto', bytes: await around.backend.forwardBackward(modelId, job.body()) });
    case 'optim_step':
      return optimStep({ ...job, operation });
    case 'save_weights':
      return saveWeights({ ...job, operation });
    case 'save_weights_for_sampler':
      return saveForSampler({ ...job, operation });
    case 'refused':
      throw new UserError(operation.error);
  }
}

const unchanged = (outcome: Outcome, records: readonly RunRecord[] = []): Execution => ({ outcome, state: null, records });

async function create(run: TrainingRun, around: RunSurroundings): Promise<Execution> {
  const { modelId, baseModel, lora } = run.model;
  if (baseModel === null || lora === null) throw new Error(`model ${modelId}: its record names no base model`);
  const state = await around.backend.create(modelId, baseModel, lora);
  return { outcome: { kind: 'json', value: { type: 'create_model', model_id: modelId } }, state, records: [] };
}

/** A step whose gradient is not finite leaves the model as it was, without the gathered gradients. */
async function optimStep({ run, around, operation, storedState }: Job<OperationOf<'optim_step'>>): Promise<Execution> {
  const { modelId, baseModel } = run.model;
  const { gradNorm, step, state } = await around.backend.optimStep(modelId, operation.adam);
  if (Number.isFinite(gradNorm)) {
    const metrics = { 'grad_norm:mean': gradNorm, 'optimizer_step:max': step };
    return { outcome: { kind: 'json', value: { type: 'optim_step', metrics } }, state, records: [] };
  }
  const before = storedState();
  if (baseModel !== null) await around.backend.restore(modelId, baseModel, before);
  const error = `the gradient norm is ${gradNorm}; the step was not applied and the gathered gradients were dropped`;
  return { outcome: { kind: 'failed', error, category: 'user' }, state: before, records: [] };
}

async function load(
  { run, around, operation }: Job<OperationOf<'load_weights' | 'create_from'>>,
  answer: Readonly<Record<string, unknown>>,
): Promise<Execution> {
  const source = around.readCheckpoint(operation.path);
  const { modelId, baseModel } = run.model;
  if (source.model.baseModel === null) throw new UserError(`${operation.path}: its model was never created`);
  if (baseModel !== null && baseModel !== source.model.baseModel) {
    throw new UserError(`${operation.path}: is a checkpoint of ${source.model.baseModel}, but the model is ${baseModel}`);
  }
  if (operation.optimizer && source.optimizer === null) {
    throw new UserError(`${operation.path}: holds no optimizer state; load a tinker://<run>/weights/<name> path, or without the optimizer`);
  }
  const optimizer = operation.optimizer ? source.optimizer : null;
  const start = optimizer === null ? { weights: source.weights } : { weights: source.weights, optimizer };
  const state = await around.backend.restore(modelId, source.model.baseModel, start);
  const model = { ...run.model, baseModel: source.model.baseModel, lora: source.model.lora };
  return { outcome: { kind: 'json', value: answer }, state, records: [model] };
}

function saveWeights(job: Job<OperationOf<'save_weights'>>): Execution {
  const { operation, run } = job;
  const existing = run.checkpoints.get('weights', operation.name);
  if (existing !== null && existing.seq !== job.seq && !operation.overwrite) {
    throw new UserError(`${pathOf(job, 'weights')}: exists already; choose another name or pass overwrite`);
  }
  const record = writeCheckpoint(job, 'weights');
  return unchanged({ kind: 'json', value: { type: 'save_weights', path: pathOf(job, 'weights') } }, [record]);
}

/** A sampler path names one set of weights for good: saving other weights under it is refused, saving the same again is not. */
function saveForSampler(job: Job<OperationOf<'save_weights_for_sampler'>>): Execution {
  const { operation, run, around } = job;
  const kind = operation.samplerId === null ? 'sampler_weights' : 'ephemeral';
  const path = pathOf(job, kind);
  const existing = run.checkpoints.get(kind, operation.name);
  if (existing !== null && existing.seq !== job.seq && existing.weightsSha256 !== sha256(job.storedState().weights)) {
    throw new UserError(`${path}: exists already with other weights; choose another name`);
  }
  const record = writeCheckpoint(job, kind);
  const type = 'save_weights_for_sampler';
  if (operation.samplerId === null) return unchanged({ kind: 'json', value: { type, path } }, [record]);
  const { sessionId, baseModel } = run.model;
  if (baseModel === null) throw new Error(`model ${run.model.modelId}: its record names no base model`);
  around.addSampler(operation.samplerId, sessionId, baseModel, path);
  return unchanged({ kind: 'json', value: { type, sampling_session_id: operation.samplerId } }, [record]);
}

function writeCheckpoint(
  job: Job<OperationOf<'save_weights' | 'save_weights_for_sampler'>>,
  kind: CheckpointKind,
): RunRecordOf<'checkpoint'> {
  const { operation, files, around } = job;
  if (!isCheckpointName(operation.name)) {
    throw new UserError(`path: '${operation.name}' is not a checkpoint name; use letters, digits, '.', '_' and '-', at most 128`);
  }
  const state = job.storedState();
  const now = around.now();
  const stem = fileStem(operation.name, job.seq);
  return {
    record: 'checkpoint',
    kind,
    name: operation.name,
    seq: job.seq,
    stem,
    time: now.toISOString(),
    sizeBytes: files.write(kind, stem, state),
    weightsSha256: sha256(state.weights),
    optimizerSha256: kind === 'weights' ? sha256(state.optimizer) : null,
    expiresAt: operation.ttlSeconds === null ? null : new Date(now.getTime() + operation.ttlSeconds * 1000).toISOString(),
    userMetadata: operation.userMetadata,
    public: false,
  };
}

const pathOf = (job: Job<OperationOf<'save_weights' | 'save_weights_for_sampler'>>, kind: CheckpointKind): string =>
  formatPath({ run: job.run.model.modelId, kind, name: job.operation.name });
