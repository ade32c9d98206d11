import type { SampleRequest, SampleResult, TokenSampler } from '../token-sampler.ts';

/** Ids of ASCII text. */
export const ids = (text: string): Int32Array => Int32Array.from(Buffer.from(text, 'latin1'));

/** Text of ASCII ids. */
export const textOf = (tokens: Int32Array): string => Buffer.from(tokens).toString('latin1');

/** A result that says `text`, each token at `logprob`; it stopped by itself if the text ends in a newline. */
export function says(text: string, over: Partial<SampleResult> = {}): SampleResult {
  const tokens = ids(text);
  const logprobs = new Float32Array(tokens.length).fill(-0.5);
  return { tokens, logprobs, stop: text.endsWith('\n') ? 'stop' : 'length', promptCacheHitTokens: 0, ...over };
}

type Step = SampleResult | Error | ((request: SampleRequest) => SampleResult | Promise<SampleResult>);

/** Answers call after call from `script` (its last step again when it runs out) and keeps every request it got. */
export function scriptedSampler(...script: Step[]): TokenSampler & { readonly requests: SampleRequest[] } {
  const requests: SampleRequest[] = [];
  return {
    version: 'step-0003',
    requests,
    async sample(request) {
      const step = script[Math.min(requests.push(request), script.length) - 1];
      if (step === undefined || step instanceof Error) throw step ?? new Error('the script is empty');
      return typeof step === 'function' ? step(request) : step;
    },
  };
}
