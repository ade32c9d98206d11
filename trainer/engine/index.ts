/**
 * The tiny language model: pure compute, no I/O. Everything is synchronous and belongs to one
 * thread: each thread that imports this has its own WebAssembly memory, so objects cannot be shared between threads, bytes can.
 *
 * Weights     loadWeights(bytes, source) -> DenseWeights    weightsToBytes(weights)
 * Training    LoraModel.create(base, settings)              model.forwardBackward(batch) / model.forward(batch) -> LossResult
 *             model.optimStep(adam) -> StepMetrics          model.merged() -> DenseWeights (a snapshot to sample from)
 *             model.weightsBytes() / model.optimizerBytes() LoraModel.restore(base, weightsBytes, optimizerBytes | null)
 * Scoring     promptLogprobs(weights, prompts)
 * Sampling    new Decoder({ cachedSequences })              decoder.submit(request) -> id; decoder.step() -> finished; decoder.cancel(id)
 */

export { Decoder } from './decoder.ts';
export { LoraModel } from './lora.ts';
export { forgetScoresBefore } from './prompt-scores.ts';
export { readSafetensors, type Tensor, type TensorFile, writeSafetensors } from './safetensors.ts';
export { promptLogprobs } from './scoring.ts';
export { TINY_SHAPE } from './shape.ts';
export * from './types.ts';
export { initialWeights, loadWeights, weightsToBytes } from './weights.ts';
