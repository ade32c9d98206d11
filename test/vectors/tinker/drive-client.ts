import type { PendingCall, SampleAll, Sampler, TinkerClient } from '../../../services/tinker/index.ts';
import { BillingPaused, type ForwardBackwardOutput } from '../../../services/tinker/index.ts';
import type { SampleAllRequest } from '../../../services/tinker/sampling/sampler.ts';
import { decodeForwardBackwardRequest } from '../../../services/tinker/wire/index.ts';
import { binaryOf } from './compare-requests.ts';
import type { Exchange } from './scripted-server.ts';

/** Makes, through the public API, the calls that recorded requests came from. */

const AFTER_PAUSES = 3;

/** Waits again, as one does after a bill was paid. */
export async function paidUp<T>(work: () => Promise<T>): Promise<T> {
  for (let pauses = 0; ; pauses++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BillingPaused) || pauses >= AFTER_PAUSES) throw error;
    }
  }
}

/** The loss call of a recorded protobuf submission. */
export async function runLossCall(client: TinkerClient, { req }: Exchange): Promise<ForwardBackwardOutput> {
  const { modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly } = decodeForwardBackwardRequest(binaryOf(req) ?? new Uint8Array());
  const training = client.training(modelId, { nextSeqId: seqId });
  const pending: PendingCall<'forward' | 'forwardBackward'> = forwardOnly
    ? await training.submitForward(datums, lossFn, { lossConfig: lossFnConfig })
    : await training.submitForwardBackward(datums, lossFn, { lossConfig: lossFnConfig });
  return paidUp(() => pending.result());
}

type RecordedSample = {
  readonly num_samples: number;
  readonly prompt: { readonly chunks: readonly { readonly tokens: readonly number[] }[] };
  readonly sampling_params: { readonly max_tokens?: number; readonly temperature: number; readonly top_k: number; readonly top_p: number };
};

/** The sample of a recorded submission, as often as given, one after the other. */
export async function runSamples(sampler: Sampler, { req }: Exchange, count: number, signal?: AbortSignal): Promise<SampleAll[]> {
  const { num_samples, prompt, sampling_params: params } = req as RecordedSample;
  const request: SampleAllRequest = {
    prompt: Int32Array.from(prompt.chunks.flatMap(({ tokens }) => tokens)),
    numSamples: num_samples,
    temperature: params.temperature,
    topK: params.top_k,
    topP: params.top_p,
    ...(params.max_tokens === undefined ? {} : { maxTokens: params.max_tokens }),
    ...(signal === undefined ? {} : { signal }),
  };
  const samples: SampleAll[] = [];
  for (let i = 0; i < count; i++) samples.push(await paidUp(() => sampler.sampleAll(request)));
  return samples;
}
