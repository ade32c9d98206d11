import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { type DecodeResult, Decoder, type DenseWeights, forgetScoresBefore, LoraModel, loadWeights } from '../../engine/index.ts';
import { UserError } from '../failures.ts';
import { encodeSample } from '../results.ts';
import type { SampleJob, SamplingCall } from './sampling-backend.ts';
import { type BaseModelFile, type CallMessage, failedAnswer, readyAnswer } from './thread-calls.ts';

/**
 * The sampling thread: one decoder for everything. Between two decoding steps the event loop takes new messages in,
 * so jobs that arrive while others are decoded join them at the next step.
 */
const port = parentPort;
if (port === null) throw new Error('sampling-thread.ts runs as a worker thread only');

/** A running asample call: its sequences by position, and how many are missing. */
type Running = { readonly job: SampleJob; readonly results: (DecodeResult | undefined)[]; readonly decodeIds: number[]; missing: number };

const weights = new Map<string, DenseWeights>();
for (const { name, weightsPath } of workerData as readonly BaseModelFile[])
  weights.set(name, loadWeights(readFileSync(weightsPath), weightsPath));
/** Enough to keep the conversations of one batch of trials: each next call extends a cached prompt. */
const decoder = new Decoder({ cachedSequences: 256 });
const running = new Map<number, Running>();
/** Decoder's id -> the call and the position in it. */
const sequences = new Map<number, { readonly callId: number; readonly position: number }>();
let stepPlanned = false;

port.on('message', ({ id, call }: CallMessage<SamplingCall>) => {
  try {
    handle(id, call);
  } catch (error) {
    // Adapters are sent without waiting for an answer; a broken one shows at the first sample that needs it.
    if (call.op === 'sample') port.postMessage(failedAnswer(id, error));
  }
});
port.postMessage(readyAnswer);

function handle(id: number, call: SamplingCall): void {
  switch (call.op) {
    case 'sample':
      start(id, call.job);
      return;
    case 'cancel':
      cancel(call.callId);
      return;
    case 'adapter': {
      const base = weightsOf(call.baseModel);
      weights.set(call.key, LoraModel.restore(base, call.weights, null).merged());
      return;
    }
    case 'forget':
      weights.delete(call.key);
      return;
  }
}

function start(callId: number, job: SampleJob): void {
  const model = weightsOf(job.weights);
  // The prompt is scored once for all.
  const { promptTargets: _, promptAlternatives: __, ...rest } = job.request;
  const others = { ...rest, promptLogprobs: false, topkPromptLogprobs: 0 };
  const decodeIds = job.seeds.map((seed, i) => decoder.submit({ ...(i === 0 ? job.request : others), weights: model, seed }));
  decodeIds.forEach((decodeId, position) => {
    sequences.set(decodeId, { callId, position });
  });
  running.set(callId, { job, results: [], decodeIds, missing: decodeIds.length });
  planStep();
}

function planStep(): void {
  if (stepPlanned || running.size === 0) return;
  stepPlanned = true;
  setImmediate(step);
}

function step(): void {
  stepPlanned = false;
  for (const { id, result } of decoder.step()) finishSequence(id, result);
  planStep();
}

function finishSequence(decodeId: number, result: DecodeResult): void {
  const place = sequences.get(decodeId);
  sequences.delete(decodeId);
  const call = place === undefined ? undefined : running.get(place.callId);
  if (place === undefined || call === undefined) return;
  call.results[place.position] = result;
  call.missing -= 1;
  if (call.missing > 0) return;
  running.delete(place.callId);
  const results = call.results.filter((each) => each !== undefined);
  const scored = results[0];
  if (scored === undefined) return;
  const { scoredSuffix, request, targetLayout } = call.job;
  if (scoredSuffix !== null) forgetScoresBefore(scored, Math.max(request.prompt.length - scoredSuffix, 0));
  send(place.callId, encodeSample(results, scored, targetLayout));
}

function cancel(callId: number): void {
  const call = running.get(callId);
  if (call === undefined) return;
  running.delete(callId);
  for (const decodeId of call.decodeIds) {
    sequences.delete(decodeId);
    decoder.cancel(decodeId);
  }
  port?.postMessage(failedAnswer(callId, new UserError('the sample was cancelled')));
}

const send = (id: number, value: Uint8Array<ArrayBuffer>): void => port?.postMessage({ id, ok: true, value }, [value.buffer]);

function weightsOf(key: string): DenseWeights {
  const found = weights.get(key);
  if (found === undefined) throw new Error(`weights '${key}' are not in the sampling thread`);
  return found;
}
