import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { type AdamSettings, type DenseWeights, LoraModel, type LoraSettings, loadWeights } from '../../engine/index.ts';
import { UserError } from '../failures.ts';
import { decodeForwardBackward } from '../loss-batch.ts';
import { encodeLossResult } from '../results.ts';
import { type AnswerMessage, type BaseModelFile, type CallMessage, failedAnswer, readyAnswer } from './thread-calls.ts';
import type { ModelState, OptimStepResult, TrainingCall } from './training-backend.ts';

/** The training thread: LoRA models in memory, one call at a time, in order of arrival. */
const port = parentPort;
if (port === null) throw new Error('training-thread.ts runs as a worker thread only');

const bases = new Map<string, DenseWeights>();
for (const { name, weightsPath } of workerData as readonly BaseModelFile[])
  bases.set(name, loadWeights(readFileSync(weightsPath), weightsPath));
const models = new Map<string, { readonly lora: LoraModel; readonly base: DenseWeights }>();

port.on('message', ({ id, call }: CallMessage<TrainingCall>) => {
  let answer: AnswerMessage;
  try {
    answer = { id, ok: true, value: run(call) };
  } catch (error) {
    answer = failedAnswer(id, error);
  }
  port.postMessage(answer);
});
port.postMessage(readyAnswer);

function run(call: TrainingCall): unknown {
  switch (call.op) {
    case 'create':
      return create(call.modelId, call.baseModel, call.lora);
    case 'restore':
      return restore(call.modelId, call.baseModel, call.state);
    case 'forwardBackward':
      return forwardBackward(call.modelId, call.body);
    case 'optimStep':
      return optimStep(call.modelId, call.adam);
    case 'drop':
      models.delete(call.modelId);
      return undefined;
  }
}

function create(modelId: string, baseModel: string, settings: LoraSettings): ModelState {
  const base = baseOf(baseModel);
  const lora = LoraModel.create(base, settings);
  models.set(modelId, { lora, base });
  return stateOf(lora);
}

function restore(modelId: string, baseModel: string, state: ModelState | Omit<ModelState, 'optimizer'>): ModelState {
  const base = baseOf(baseModel);
  const lora = LoraModel.restore(base, state.weights, 'optimizer' in state ? state.optimizer : null);
  models.set(modelId, { lora, base });
  return stateOf(lora);
}

function forwardBackward(modelId: string, body: Uint8Array): Uint8Array {
  const { lora, base } = modelOf(modelId);
  const { batch, forwardOnly } = decodeForwardBackward(body, base.shape);
  const columns = batch.datums.map((datum) => ('columns' in datum ? datum.columns : undefined));
  return encodeLossResult(forwardOnly ? lora.forward(batch) : lora.forwardBackward(batch), columns);
}

function optimStep(modelId: string, adam: AdamSettings): OptimStepResult {
  const { lora } = modelOf(modelId);
  const { gradNorm, step } = lora.optimStep(adam);
  return { gradNorm, step, state: stateOf(lora) };
}

const stateOf = (lora: LoraModel): ModelState => ({ weights: lora.weightsBytes(), optimizer: lora.optimizerBytes() });

function baseOf(name: string): DenseWeights {
  const base = bases.get(name);
  if (base === undefined) throw new UserError(`base_model: '${name}' is not served here; served: ${[...bases.keys()].join(', ')}`);
  return base;
}

function modelOf(modelId: string): { readonly lora: LoraModel; readonly base: DenseWeights } {
  const model = models.get(modelId);
  if (model === undefined) throw new Error(`model ${modelId} is not in the training thread; it must be restored first`);
  return model;
}
