/**
 * The tiny language model: pure compute, no I/O. Everything is synchronous and belongs to one thread
 * (one WebAssembly memory per thread); use it from a single worker thread or the main thread.
 *
 * Weights     loadWeights(bytes) -> DenseWeights            weightsToBytes(weights, metadata?)
 * Training    LoraModel.create(base, settings)              model.forwardBackward(batch) / model.forward(batch) -> LossResult
 *             model.optimStep(adam) -> StepMetrics          model.merged() -> DenseWeights (a snapshot to sample from)
 *             model.weightsBytes() / model.optimizerBytes() LoraModel.restore(base, weightsBytes, optimizerBytes | null)
 * Scoring     promptLogprobs(weights, prompts)
 * Sampling    new Decoder({ cachedSequences })              decoder.submit(request) -> id; decoder.step() -> finished; decoder.cancel(id)
 *             new BatchSampler(decoder).sample(request)     promise; concurrent requests share decoding steps
 */
export * from './types.ts';
