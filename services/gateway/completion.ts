import type { CallNotice } from './record.ts';
import type { ParsedTurn } from './renderer.ts';
import type { TokenLine } from './token-line.ts';

/** A recorded call, for the answer. */
export type Completion = {
  readonly callIndex: number;
  readonly prompt: TokenLine;
  readonly sampled: Int32Array;
  readonly logprobs: Float64Array;
  readonly maskedTokens: number;
  readonly stop: 'stop' | 'length';
  readonly cachedPromptTokens: number;
  readonly said: ParsedTurn;
};

/** What is told of it before it is answered. */
export function noticeOf(completion: Completion, samplingMs: number): CallNotice {
  const { callIndex, prompt, sampled, cachedPromptTokens, maskedTokens, stop } = completion;
  return { callIndex, promptTokens: prompt.length, cachedPromptTokens, sampledTokens: sampled.length, maskedTokens, stop, samplingMs };
}
