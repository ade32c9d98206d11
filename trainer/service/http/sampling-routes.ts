import { randomInt } from 'node:crypto';
import { Hono } from 'hono';
import { z } from 'zod';
import { topkLimit } from '../../engine/shape.ts';
import { HttpFailure } from '../failures.ts';
import type { Service } from '../service.ts';
import type { SampleJob } from '../threads/sampling-backend.ts';
import { count, readJson } from './bodies.ts';

const createSamplingSession = z.object({
  session_id: z.string(),
  sampling_session_seq_id: count,
  base_model: z.string().nullish(),
  model_path: z.string().startsWith('tinker://').nullish(),
});

const notServed = (what: string) => z.literal(0, { error: `${what} is not served here` }).default(0);

const asample = z.object({
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
    top_k: z.literal(-1, { error: 'top_k is not served here; send -1' }).default(-1),
    top_p: z.literal(1, { error: 'top_p is not served here; send 1' }).default(1),
  }),
  prompt_logprobs: z.boolean().default(false),
  prompt_logprobs_last_n: z.number().int().min(1).nullish(),
  topk_prompt_logprobs: z.number().default(0),
  topk_sample_logprobs: notServed('topk_sample_logprobs'),
  prompt_alt_tokens_k: notServed('prompt_alt_tokens_k'),
  target_prompt_logprobs: z.null({ error: 'target_prompt_logprobs is not served here' }).optional(),
});

/** Calls of sampling clients. */
export function samplingRoutes(service: Service): Hono {
  const { sessions, sampling, runs } = service;
  return new Hono()
    .post('/create_sampling_session', async (c) => {
      const body = await readJson(c, createSamplingSession);
      const path = body.model_path ?? null;
      const owner = path === null ? null : runs.ownerOf(path);
      if (path !== null && owner === null) throw new HttpFailure(404, `model_path: no checkpoint '${path}'`);
      const baseModel = owner?.baseModel ?? body.base_model ?? null;
      if (baseModel === null) throw new HttpFailure(400, 'base_model or model_path: one of them is needed');
      service.checkBaseModel(baseModel);
      const sampler = sessions.createSampler(body.session_id, body.sampling_session_seq_id, baseModel, path);
      return c.json({ type: 'create_sampling_session', sampling_session_id: sampler.samplerId });
    })
    .get('/samplers/:id', (c) => {
      const { samplerId, baseModel, modelPath } = sessions.sampler(c.req.param('id'));
      return c.json({ sampler_id: samplerId, base_model: baseModel, ...(modelPath === null ? {} : { model_path: modelPath }) });
    })
    .post('/asample', async (c) => {
      const body = await readJson(c, asample);
      const sampler = sessions.sampler(body.sampling_session_id);
      if (sampler.modelPath !== null && runs.ownerOf(sampler.modelPath) === null) {
        throw new HttpFailure(404, `sampling_session_id: its weights ${sampler.modelPath} were removed`);
      }
      const requestId = sampling.submit(sampler, body.seq_id, sampleJob(body, service));
      const sequenceIds = Array.from({ length: body.num_samples }, (_, i) => `${requestId}:${i}`);
      return c.json({ request_id: requestId, sample_sequence_ids: sequenceIds });
    });
}

function sampleJob(body: z.infer<typeof asample>, { vocab, context, endOfTurn }: Service): Omit<SampleJob, 'weights'> {
  const { sampling_params: params } = body;
  const prompt = Int32Array.from(
    body.prompt.chunks.length === 1 ? (body.prompt.chunks[0]?.tokens ?? []) : body.prompt.chunks.flatMap((chunk) => chunk.tokens),
  );
  if (prompt.length === 0) throw new HttpFailure(400, 'prompt: is empty');
  const bad = prompt.findIndex((token) => token < 0 || token >= vocab);
  if (bad >= 0) throw new HttpFailure(400, `prompt: token ${prompt[bad]} at ${bad} is outside the vocabulary (0 to ${vocab - 1})`);
  const topk = body.topk_prompt_logprobs;
  if (!Number.isInteger(topk) || topk < 0 || topk > topkLimit(vocab)) {
    throw new HttpFailure(400, `topk_prompt_logprobs: ${topk} is out of range; send 1 to ${topkLimit(vocab)}, or 0 for none`);
  }
  const scoresPrompt = body.prompt_logprobs || topk > 0;
  return {
    prompt,
    maxTokens: roomFor(prompt.length, params.max_tokens ?? null, scoresPrompt, context),
    temperature: params.temperature,
    stopTokens: stopTokens(params.stop ?? null, endOfTurn, vocab),
    seeds: seeds(params.seed ?? randomInt(2 ** 32), body.num_samples),
    promptLogprobs: body.prompt_logprobs,
    scoredSuffix: body.prompt_logprobs_last_n ?? null,
    topkPromptLogprobs: topk,
  };
}

/** A prompt that fills the context can still be scored; it gets an empty answer. Anything else beyond the context is refused. */
function roomFor(promptLength: number, maxTokens: number | null, scoresPrompt: boolean, context: number): number {
  const room = context - promptLength;
  if (room === 0 && scoresPrompt && (maxTokens ?? 1) === 1) return 0;
  const wanted = maxTokens ?? room;
  if (wanted < 1 || wanted > room) {
    throw new HttpFailure(
      400,
      `sampling_params.max_tokens: prompt (${promptLength}) and max_tokens (${wanted}) exceed the context of ${context}`,
    );
  }
  return wanted;
}

function stopTokens(stop: string | readonly string[] | readonly number[] | null, endOfTurn: number, vocab: number): readonly number[] {
  if (stop === null) return [endOfTurn];
  return (typeof stop === 'string' ? [stop] : stop).map((each) => {
    const token = typeof each === 'number' ? each : each.length === 1 ? each.charCodeAt(0) : -1;
    if (token >= 0 && token < vocab) return token;
    throw new HttpFailure(
      400,
      `sampling_params.stop: ${JSON.stringify(each)} is not a token; give ids from 0 to ${vocab - 1} or single characters`,
    );
  });
}

/** Seed of each sequence: the first has the caller's, the others different ones that follow from it. */
function seeds(seed: number, samples: number): readonly number[] {
  return Array.from({ length: samples }, (_, i) => (Number(BigInt.asUintN(32, BigInt(seed))) + Math.imul(i, 0x9e3779b1)) >>> 0);
}
