import { randomInt } from 'node:crypto';
import { z } from 'zod';
import { topkLimit } from '../../engine/shape.ts';
import { HttpFailure } from '../failures.ts';
import type { SampleJob } from '../threads/sampling-backend.ts';
import { count } from './bodies.ts';
import { promptTargets, tensorSchema } from './prompt-targets.ts';

/** Body of an asample call. */
export const asampleSchema = z.object({
  sampling_session_id: z.string(),
  seq_id: count,
  num_samples: z.number().int().min(1).max(256).default(1),
  prompt: z.object({
    chunks: z.array(
      z.object({ type: z.literal('encoded_text', { error: 'only text chunks are served here' }), tokens: z.array(z.number().int()) }),
    ),
  }),
  sampling_params: z.object({
    max_tokens: z.number().int().min(1).nullish(),
    seed: z.number().int().nullish(),
    stop: z.union([z.string(), z.array(z.string()), z.array(z.number().int())]).nullish(),
    temperature: z.number().nonnegative().default(1),
    top_k: z
      .number()
      .int()
      .refine((k) => k === -1 || k >= 1, { error: 'must be 1 or more, or -1 for all' })
      .default(-1),
    top_p: z.number().gt(0).lte(1).default(1),
  }),
  prompt_logprobs: z.boolean().nullish(),
  prompt_logprobs_last_n: z.number().int().min(1).nullish(),
  topk_prompt_logprobs: z.number().default(0),
  topk_sample_logprobs: z.number().default(0),
  prompt_alt_tokens_k: z.number().default(0),
  target_prompt_logprobs: tensorSchema.nullish(),
  record_stability_info: z.literal(false, { error: 'is not served here; leave it out' }).nullish(),
});

/** What the model can take. */
export type ModelLimits = { readonly vocab: number; readonly context: number; readonly endOfTurn: number };

/** What a body asks for. Throws HttpFailure 400 naming the field that cannot be served. */
export function sampleJob(body: z.infer<typeof asampleSchema>, limits: ModelLimits): Omit<SampleJob, 'weights'> {
  const { vocab, context, endOfTurn } = limits;
  const { sampling_params: params, topk_prompt_logprobs: topk, prompt_alt_tokens_k: alternatives } = body;
  const prompt = promptTokens(body.prompt.chunks, vocab);
  checkTopk('topk_prompt_logprobs', topk, vocab);
  checkTopk('topk_sample_logprobs', body.topk_sample_logprobs, vocab);
  checkTopk('prompt_alt_tokens_k', alternatives, vocab);
  const scoredSuffix = body.prompt_logprobs_last_n ?? null;
  if (scoredSuffix !== null && (body.prompt_logprobs !== true || scoredSuffix >= prompt.length)) {
    const wrong = body.prompt_logprobs === true ? `must be below the prompt's length of ${prompt.length}` : 'needs prompt_logprobs';
    throw new HttpFailure(400, `prompt_logprobs_last_n: ${wrong}`);
  }
  const targets = body.target_prompt_logprobs ? promptTargets(body.target_prompt_logprobs, prompt.length - 1, vocab) : null;
  const scoresPrompt = body.prompt_logprobs === true || topk > 0 || alternatives > 0 || targets !== null;
  return {
    request: {
      prompt,
      maxTokens: roomFor(prompt.length, params.max_tokens ?? null, scoresPrompt, context),
      temperature: params.temperature,
      ...stops(params.stop ?? null, endOfTurn, vocab),
      promptLogprobs: body.prompt_logprobs === true,
      topkPromptLogprobs: topk,
      topK: params.top_k === -1 ? vocab : params.top_k,
      topP: params.top_p,
      topkSampledLogprobs: body.topk_sample_logprobs,
      promptAlternatives: alternatives,
      ...(targets === null ? {} : { promptTargets: targets.cells }),
    },
    seeds: seeds(params.seed ?? randomInt(2 ** 32), body.num_samples),
    scoredSuffix,
    targetLayout: targets?.layout ?? null,
  };
}

function promptTokens(chunks: readonly { readonly tokens: readonly number[] }[], vocab: number): Int32Array {
  const prompt = chunks.length === 1 ? (chunks[0]?.tokens ?? []) : chunks.flatMap((chunk) => chunk.tokens);
  if (prompt.length === 0) throw new HttpFailure(400, 'prompt: is empty');
  // Before they are narrowed to 32 bits, which would make another id of a large one.
  const bad = prompt.findIndex((token) => token < 0 || token >= vocab);
  if (bad >= 0) throw new HttpFailure(400, `prompt: token ${prompt[bad]} at ${bad} is outside the vocabulary (0 to ${vocab - 1})`);
  return Int32Array.from(prompt);
}

function checkTopk(field: string, k: number, vocab: number): void {
  if (Number.isInteger(k) && k >= 0 && k <= topkLimit(vocab)) return;
  throw new HttpFailure(400, `${field}: ${k} is out of range; send 1 to ${topkLimit(vocab)}, or 0 for none`);
}

/** A prompt that fills the context can still be scored; it gets an empty answer. Anything else beyond the context is refused. */
function roomFor(promptLength: number, maxTokens: number | null, scoresPrompt: boolean, context: number): number {
  const room = context - promptLength;
  if (room === 0 && scoresPrompt && (maxTokens ?? 1) === 1) return 0;
  const wanted = maxTokens ?? room;
  if (wanted >= 1 && wanted <= room) return wanted;
  throw new HttpFailure(
    400,
    `sampling_params.max_tokens: prompt (${promptLength}) and max_tokens (${wanted}) exceed the context of ${context}`,
  );
}

type Stops = Pick<SampleJob['request'], 'stopTokens' | 'stopSequences'>;

/** Token ids, or strings: the vocabulary is ASCII, so a string is the run of its characters. */
function stops(stop: string | readonly string[] | readonly number[] | null, endOfTurn: number, vocab: number): Stops {
  if (stop === null) return { stopTokens: [endOfTurn] };
  const runs = (typeof stop === 'string' ? [stop] : stop).map((each) => {
    const run = typeof each === 'number' ? [each] : [...each].map((char) => char.codePointAt(0) ?? -1);
    if (run.length > 0 && run.every((token) => token >= 0 && token < vocab)) return run;
    const rule = `give ids from 0 to ${vocab - 1}, or strings of one or more of the ${vocab} ASCII characters`;
    throw new HttpFailure(400, `sampling_params.stop: ${JSON.stringify(each)} can never be sampled; ${rule}`);
  });
  return { stopTokens: runs.filter((run) => run.length === 1).flat(), stopSequences: runs.filter((run) => run.length > 1) };
}

/** Seed of each sequence: the first has the caller's, the others different ones that follow from it. */
function seeds(seed: number, samples: number): readonly number[] {
  return Array.from({ length: samples }, (_, i) => (Number(BigInt.asUintN(32, BigInt(seed))) + Math.imul(i, 0x9e3779b1)) >>> 0);
}
