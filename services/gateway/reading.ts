import type { ChatRenderer, ParsedTurn, ToolDefinition } from './renderer.ts';
import { type CheckedSample, checkSample } from './sample-check.ts';
import { cutAtStop, type Stops, saidBefore } from './stops.ts';
import type { SampleResult } from './token-sampler.ts';

/** A sampling result as it is kept, and what it says to the agent. */
export type Reading = CheckedSample & {
  readonly stop: 'stop' | 'length';
  readonly said: ParsedTurn;
  /** Sampled behind a stop string: paid for, but no part of the turn. */
  readonly droppedTokens: number;
};

export type ReadingContext = {
  readonly renderer: ChatRenderer;
  readonly prompt: Int32Array;
  readonly tools: readonly ToolDefinition[];
  readonly callIndex: number;
  readonly stops: Stops;
  readonly maxTokens: number;
};

/**
 * Checks a result, ends it at the first stop string, and reads its text.
 * @throws BadSampleError when it can be neither trained on nor spliced
 */
export async function readSample(
  result: SampleResult,
  { renderer, prompt, tools, callIndex, stops, maxTokens }: ReadingContext,
): Promise<Reading> {
  const whole = checkSample(result, { maxTokens, vocabularySize: renderer.vocabulary.size });
  const context = { prompt, tools, callIndex };
  const cut = cutAtStop(whole.sampled, stops.texts, renderer.vocabulary);
  if (!cut) return { ...whole, stop: result.stop, said: await renderer.parse(whole.sampled, context), droppedTokens: 0 };
  const sampled = whole.sampled.slice(0, cut.kept);
  const logprobs = whole.logprobs.slice(0, cut.kept);
  return {
    sampled,
    logprobs,
    maskedTokens: logprobs.filter(Number.isNaN).length,
    stop: 'stop',
    said: await saidBefore(cut, sampled, renderer, context),
    droppedTokens: whole.sampled.length - cut.kept,
  };
}
