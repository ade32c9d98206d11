import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Decoder, loadWeights, promptLogprobs } from '../trainer/engine/index.ts';
import { sdkPython } from './tinker-sdk/python.ts';
import { STUDENT } from './trainer-fixture.ts';
import { KEY, startTrainerProcess } from './trainer-process.ts';

/** The steps that fail on purpose: losses that the trainer does not serve. */
const REFUSED = ['forward_backward_cispo', 'forward_backward_dro'];
/** What the script trains on and samples from. */
const A = [1, 50, 60, 70, 80, 90, 2];
const B = [1, 100, 101, 102, 2];
const PROMPT = A.slice(0, 4);

const stepSchema = z.object({ step: z.string(), error: z.string().optional(), result: z.unknown().optional() });
const lossSchema = z.object({
  metrics: z.record(z.string(), z.number()),
  loss_fn_outputs: z.array(z.object({ logprobs: z.object({ data: z.array(z.number()), shape: z.array(z.number()) }) })),
});
const topk = z.array(z.array(z.tuple([z.number(), z.number()])).nullable()).nullable();
const sampleSchema = z.object({
  sequences: z.array(
    z.object({
      tokens: z.array(z.number()),
      logprobs: z.array(z.number()),
      stop_reason: z.string(),
      sequence_id: z.string(),
      topk_logprobs: topk,
    }),
  ),
  prompt_logprobs: z.array(z.number().nullable()).nullable(),
  topk_prompt_logprobs: topk,
});

let steps: readonly z.infer<typeof stepSchema>[];
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tinker-drive-'));
  const trainer = await startTrainerProcess({ state: join(folder, 'state') });
  const out = join(folder, 'results.json');
  const script = fileURLToPath(new URL('./fixtures/tinker/tools/drive_sdk.py', import.meta.url));
  const env = { TINKER_BASE_URL: trainer.url, TINKER_API_KEY: KEY, TINKER_TELEMETRY: '0' };
  await execa(await sdkPython(), [script, STUDENT, out], { env, timeout: 240_000 });
  steps = z.object({ sdk: z.literal('0.38.0'), steps: z.array(stepSchema) }).parse(JSON.parse(readFileSync(out, 'utf8'))).steps;
  await trainer.kill('SIGTERM');
  rmSync(folder, { recursive: true });
}, 600_000);

const resultOf = <Schema extends z.ZodType>(step: string, schema: Schema): z.infer<Schema> =>
  schema.parse(steps.find((each) => each.step === step)?.result);
const lossOf = (step: string) => resultOf(step, lossSchema);
const logprobsOf = (step: string): number[][] => lossOf(step).loss_fn_outputs.map(({ logprobs }) => logprobs.data);
const sampleOf = (step: string) => resultOf(step, sampleSchema);
const tokensOf = (step: string): number[][] => sampleOf(step).sequences.map(({ tokens }) => tokens);

const base = loadWeights(readFileSync(fileURLToPath(new URL('../trainer/weights/tiny-student.safetensors', import.meta.url))));
const close = (values: readonly number[], expected: ArrayLike<number>): void => {
  expect(values.length).toBe(expected.length);
  for (const [i, value] of values.entries()) expect(Math.abs(value - (expected[i] ?? Number.NaN)), `position ${i}`).toBeLessThan(1e-4);
};

describe('the drive of the official SDK', () => {
  it('comes to its end with every step done but the losses that are not served, which get a 400 that says what is', () => {
    expect(steps.map(({ step }) => step).at(-1)).toBe('service_client_close');
    expect(steps).toHaveLength(44);
    expect(steps.filter(({ error }) => error !== undefined).map(({ step }) => step)).toEqual(REFUSED);
    for (const [step, loss] of [REFUSED.at(0), REFUSED.at(1)].map((name) => [name, name?.split('_').at(-1)])) {
      const error = steps.find((each) => each.step === step)?.error;
      expect(error).toContain('BadRequestError: Error code: 400');
      expect(error).toContain(`loss_fn: '${loss}' is not served here; use cross_entropy, importance_sampling or ppo`);
    }
  });

  it('starts from the base model: an untrained adapter scores as the base does by itself', () => {
    const [a, b] = promptLogprobs(base, [Int32Array.from(A), Int32Array.from(B)]);
    const scores = logprobsOf('forward_cross_entropy');
    close(scores[0] ?? [], a?.slice(1) ?? []);
    close(scores[1] ?? [], b?.slice(1) ?? []);
    expect(logprobsOf('forward_backward_cross_entropy')).toEqual(scores);
    const weights = [0, 0, 1, 1, 1, 1, 0.5, 1, 0, 1];
    const sum = scores.flat().reduce((total, logprob, i) => total - logprob * (weights[i] ?? Number.NaN), 0);
    expect(lossOf('forward_cross_entropy').metrics['loss:sum']).toBeCloseTo(sum, 4);
    const greedy = new Decoder({ cachedSequences: 1 });
    greedy.submit({
      weights: base,
      prompt: Int32Array.from(PROMPT),
      maxTokens: 4,
      temperature: 0,
      stopTokens: [],
      seed: 1,
      promptLogprobs: false,
      topkPromptLogprobs: 0,
    });
    let result = greedy.step();
    while (result.length === 0) result = greedy.step();
    expect(tokensOf('sample_base_model')).toEqual([[...(result[0]?.result.tokens ?? [])]]);
  });

  it('trains: a step lowers the loss, every metric has a reduction, and the losses are the sums of their formulas', () => {
    const after = lossOf('forward_cross_entropy_after');
    expect(after.metrics['loss:sum']).toBeLessThan((lossOf('forward_cross_entropy').metrics['loss:sum'] ?? 0) - 5);
    const step = resultOf('optim_step_adam', z.object({ metrics: z.record(z.string(), z.number()) })).metrics;
    expect([step['grad_norm:mean'], step['optimizer_step:max']]).toEqual([expect.any(Number), 1]);
    for (const name of ['forward_cross_entropy', 'forward_backward_importance_sampling', 'forward_backward_ppo']) {
      for (const metric of [...Object.keys(step), ...Object.keys(lossOf(name).metrics)]) expect(metric).toMatch(/^[^:]+:(sum|mean|max)$/);
    }
    // The script takes what the model said before the step as sampled.
    const sampled = logprobsOf('forward_backward_cross_entropy').flat();
    const now = logprobsOf('forward_backward_ppo').flat();
    expect(now).toEqual(logprobsOf('forward_cross_entropy_after').flat());
    const advantages = [0, 0, 1, 1, -0.5, 0.25, 1, -1, 0.5, 0];
    const sum = (value: (ratio: number, advantage: number) => number): number =>
      advantages.reduce((total, advantage, i) => total - value(Math.exp((now[i] ?? 0) - (sampled[i] ?? 0)), advantage), 0);
    const clip = (ratio: number): number => Math.min(Math.max(ratio, 0.8), 1.2);
    const relative = (actual: number | undefined, expected: number) => Math.abs((actual ?? Number.NaN) / expected - 1);
    const importance = lossOf('forward_backward_importance_sampling').metrics['loss:sum'];
    expect(
      relative(
        importance,
        sum((ratio, advantage) => ratio * advantage),
      ),
    ).toBeLessThan(1e-4);
    const ppo = lossOf('forward_backward_ppo').metrics['loss:sum'];
    expect(
      relative(
        ppo,
        sum((ratio, advantage) => Math.min(ratio * advantage, clip(ratio) * advantage)),
      ),
    ).toBeLessThan(1e-4);
  });

  it('goes on from saved state as the model that saved it, in new models and in one that was there', () => {
    const restored = logprobsOf('create_training_client_from_state');
    expect(logprobsOf('create_training_client_from_state_with_optimizer')).toEqual(restored);
    expect(logprobsOf('forward_after_load_state')).toEqual(restored);
    expect(restored).not.toEqual(logprobsOf('forward_cross_entropy_after'));
    const sampler = resultOf('compute_logprobs', z.array(z.number().nullable()));
    expect(sampler[0]).toBeNull();
    close(sampler.slice(1) as number[], restored[0] ?? []);
  });

  it('samples by seed: the same call repeats, samples of one call differ, and each has an id of its own', () => {
    const [first, second] = [sampleOf('sample_seed42_n2'), sampleOf('sample_seed42_n2_again')];
    expect(tokensOf('sample_seed42_n2_again')).toEqual(tokensOf('sample_seed42_n2'));
    expect(second.sequences.map(({ logprobs }) => logprobs)).toEqual(first.sequences.map(({ logprobs }) => logprobs));
    expect(first.sequences[0]?.tokens).not.toEqual(first.sequences[1]?.tokens);
    expect(new Set([...first.sequences, ...second.sequences].map((sequence) => sequence.sequence_id)).size).toBe(4);
  });

  it('stops at token ids and runs to the length where a stop string does not come', () => {
    const greedy = tokensOf('sample_greedy')[0] ?? [];
    expect(greedy).toHaveLength(8);
    const stop = greedy[2] as number;
    expect(sampleOf('sample_stop_token_ids').sequences[0]).toMatchObject({
      tokens: greedy.slice(0, greedy.indexOf(stop) + 1),
      stop_reason: 'stop',
    });
    expect(sampleOf('sample_stop_strings').sequences[0]).toMatchObject({ tokens: greedy, stop_reason: 'length' });
    expect(tokensOf('sample_top_k_top_p')[0]).toHaveLength(4);
  });

  it('tells log-probabilities of the prompt, its likeliest tokens, and those of the sampled positions', () => {
    const prompt = sampleOf('sample_prompt_logprobs_topk');
    expect(prompt.prompt_logprobs?.map((value) => value !== null)).toEqual([false, true, true, true]);
    expect(prompt.topk_prompt_logprobs?.map((row) => row?.length ?? 0)).toEqual([0, 3, 3, 3]);
    const scores = resultOf('compute_logprobs', z.array(z.number().nullable()));
    close(prompt.prompt_logprobs?.slice(1) as number[], scores.slice(1, 4) as number[]);
    for (const [i, row] of (prompt.topk_prompt_logprobs ?? []).entries()) {
      const own = row?.find(([token]) => token === PROMPT[i]);
      if (own !== undefined) expect(own[1]).toBeCloseTo(prompt.prompt_logprobs?.[i] ?? Number.NaN, 4);
      expect(row ?? []).toEqual((row ?? []).toSorted((a, b) => b[1] - a[1]));
    }
    const [greedy] = sampleOf('sample_topk_sample_logprobs').sequences;
    expect(greedy?.topk_logprobs?.map((row) => row?.length)).toEqual([2, 2]);
    expect(greedy?.topk_logprobs?.map((row) => row?.[0])).toEqual(greedy?.tokens.map((token, i) => [token, greedy.logprobs[i]]));
  });

  it('lists what was saved under a name, and nothing of the snapshot that was asked for without one', () => {
    const { path } = resultOf('save_state', z.object({ path: z.string() }));
    const sampler = resultOf('save_weights_for_sampler', z.object({ path: z.string() })).path;
    const listed = resultOf('list_checkpoints', z.object({ checkpoints: z.array(z.object({ tinker_path: z.string() })) })).checkpoints;
    expect(listed.map(({ tinker_path }) => tinker_path).sort()).toEqual([sampler, path].sort());
    expect(resultOf('weights_info', z.unknown())).toMatchObject({ base_model: STUDENT, is_lora: true, lora_rank: 4 });
    const run = { base_model: STUDENT, is_lora: true, lora_rank: 4, corrupted: false };
    expect(resultOf('get_training_run', z.unknown())).toMatchObject({ ...run, last_checkpoint: { tinker_path: path } });
    expect(resultOf('list_training_runs', z.unknown())).toMatchObject({ training_runs: [run], cursor: { total_count: 1 } });
  });

  it('unloads a model as a future and knows no future that it did not promise', () => {
    const raw = z.object({ status: z.number(), body: z.string() });
    const unloaded = resultOf('raw_unload_model', raw);
    expect([unloaded.status, JSON.parse(unloaded.body)]).toEqual([200, { request_id: expect.any(String), model_id: expect.any(String) }]);
    const unknown = resultOf('raw_unknown_future', raw);
    expect([unknown.status, JSON.parse(unknown.body)]).toEqual([404, { detail: expect.stringContaining('999999') }]);
  });
});
