import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  BadRequest,
  type ForwardBackwardOutput,
  type LossRows,
  type Sampler,
  TinkerClient,
  type TrainingClient,
  topkRow,
} from '../services/tinker/index.ts';
import { decodeSampleResponse } from '../services/tinker/wire/index.ts';
import { STUDENT, TrainerFixture, textPrompt } from './trainer-fixture.ts';
import { KEY } from './trainer-process.ts';

const text = 'files key sun\ntask copy sun to map\n$ cp sun map\n';
const tokens = Int32Array.from(text, (char) => char.charCodeAt(0));

let fixture: TrainerFixture;
let client: TinkerClient;
let sampler: Sampler;
beforeAll(async () => {
  fixture = await TrainerFixture.start();
  client = await TinkerClient.connect({ baseUrl: fixture.trainer.url, apiKey: KEY });
  sampler = await client.sampler({ baseModel: STUDENT });
});
afterAll(async () => {
  await client.close();
  await fixture.stop();
});

const topk = async (k: number, of: Int32Array = tokens) => {
  const scores = await sampler.promptLogprobs(of, { topK: k });
  if (scores.topk === null) throw new Error('no table came');
  return { ...scores, topk: scores.topk };
};

describe('the likeliest tokens of a prompt', () => {
  it('come for every position but the first, best first, with the log-probabilities of the distribution', async () => {
    const { logprobs, topk: table } = await topk(8);
    const { topk: wide } = await topk(64);
    expect([table.k, table.length]).toEqual([8, tokens.length]);
    expect(topkRow(table, 0)).toEqual([]);
    let found = 0;
    for (let i = 1; i < tokens.length; i++) {
      const row = topkRow(table, i);
      expect(new Set(row.map(({ tokenId }) => tokenId)).size).toBe(8);
      expect(row).toEqual(row.toSorted((a, b) => b.logprob - a.logprob || a.tokenId - b.tokenId));
      expect(row).toEqual(topkRow(wide, i).slice(0, 8));
      const own = topkRow(wide, i).find(({ tokenId }) => tokenId === tokens[i]);
      if (own === undefined) expect(logprobs[i]).toBeLessThanOrEqual(topkRow(wide, i)[63]?.logprob ?? Number.NaN);
      else expect(Math.abs(own.logprob - (logprobs[i] ?? Number.NaN))).toBeLessThan(1e-6);
      found += own === undefined ? 0 : 1;
    }
    expect(found).toBeGreaterThan(10);
  });

  it('leave everything else in the answer as it is without them', async () => {
    const without = await sampler.promptLogprobs(tokens);
    const zero = await sampler.promptLogprobs(tokens, { topK: 0 });
    expect(without.topk).toBeNull();
    expect(zero).toEqual(without);
    expect((await topk(8)).logprobs).toEqual(without.logprobs);
    /** But for what the cache had of the prompt: it grows from call to call. */
    const answer = async (more: object) => {
      const id = await fixture.sampler({ base_model: STUDENT });
      const bytes = await fixture.client.call('asample', fixture.sampleBody(id, { num_samples: 2, ...more }));
      return { ...decodeSampleResponse(bytes as Uint8Array), promptCacheHitTokens: null };
    };
    const sampled = await answer({});
    expect(await answer({ topk_prompt_logprobs: 0 })).toEqual(sampled);
    const { topkPromptLogprobs, ...rest } = await answer({ topk_prompt_logprobs: 3 });
    expect({ ...rest, topkPromptLogprobs: null }).toEqual(sampled);
    expect(topkPromptLogprobs).toMatchObject({ k: 3, length: 16 });
  });

  it('come for a prompt that fills the context, and for the end of one only', async () => {
    const full = await topk(2, new Int32Array(192).fill(97));
    expect(topkRow(full.topk, 191)).toHaveLength(2);
    const id = await fixture.sampler({ base_model: STUDENT });
    const more = { prompt: textPrompt('abcdef'), prompt_logprobs: true, prompt_logprobs_last_n: 2, topk_prompt_logprobs: 3 };
    const { topkPromptLogprobs: table } = decodeSampleResponse(
      (await fixture.client.call('asample', fixture.sampleBody(id, more))) as Uint8Array,
    );
    if (table === null) throw new Error('no table came');
    expect(Array.from({ length: 6 }, (_, i) => topkRow(table, i).length)).toEqual([0, 0, 0, 0, 3, 3]);
  });

  it.each([65, 128, -1, 1.5])('are refused by the name of the field when there shall be %d', async (k) => {
    const error = await sampler.promptLogprobs(tokens, { topK: k }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BadRequest);
    expect(String(error)).toContain(`topk_prompt_logprobs: ${k} is out of range; send 1 to 64`);
  });
});

describe('training', () => {
  const model = async (): Promise<TrainingClient> => {
    const { modelId, nextSeqId } = await client.createModel({ baseModel: STUDENT, rank: 4, seed: 1 });
    return client.training(modelId, { nextSeqId });
  };
  const logprobsOf = ({ lossFnOutputs }: ForwardBackwardOutput) => lossFnOutputs.map(({ logprobs }) => logprobs?.values as Float32Array);

  it('takes copies of one sequence with the candidates of each rank as targets, and moves towards them', async () => {
    const { topk: table } = await topk(4);
    const modelInput = tokens.subarray(0, -1);
    const weightOfRank = [0.5, 0.25, 0.125, 0];
    const ranks: LossRows[] = weightOfRank.map((weight, rank) => ({
      modelInput,
      targetTokens: Int32Array.from(modelInput, (_, i) => topkRow(table, i + 1)[rank]?.tokenId ?? -1),
      weights: new Float32Array(modelInput.length).fill(weight),
    }));
    const training = await model();
    const first = await training.forwardBackward(ranks, 'cross_entropy');
    let loss = 0;
    logprobsOf(first).forEach((logprobs, rank) => {
      expect(logprobs).toHaveLength(modelInput.length);
      logprobs.forEach((logprob, i) => {
        expect(Math.abs(logprob - (topkRow(table, i + 1)[rank]?.logprob ?? Number.NaN))).toBeLessThan(1e-5);
        loss -= logprob * (weightOfRank[rank] ?? Number.NaN);
      });
    });
    expect(first.metrics['loss:sum']).toBeCloseTo(loss, 3);
    await training.optimStep({ learningRate: 0.02 });
    expect((await training.forward(ranks, 'cross_entropy')).metrics['loss:sum']).toBeLessThan(loss - 1);
  });

  it('clips ppo where its configuration says, and at 0.8 and 1.2 without one', async () => {
    const rows = { modelInput: tokens.subarray(0, -1), targetTokens: tokens.subarray(1) };
    const training = await model();
    const [now] = logprobsOf(await training.forward([rows], 'cross_entropy'));
    const ratio = 1.5;
    const datum = { ...rows, logprobs: (now as Float32Array).map((logprob) => logprob - Math.log(ratio)) };
    const meanLoss = async (advantage: number, lossConfig?: Readonly<Record<string, number>>): Promise<number> => {
      const advantages = new Float32Array(rows.modelInput.length).fill(advantage);
      const output = await training.forwardBackward([{ ...datum, advantages }], 'ppo', lossConfig === undefined ? {} : { lossConfig });
      return (output.metrics['loss:sum'] ?? Number.NaN) / rows.modelInput.length;
    };
    expect(await meanLoss(1)).toBeCloseTo(-1.2, 4);
    expect(await meanLoss(1, { clip_high_threshold: 1.4 })).toBeCloseTo(-1.4, 4);
    expect(await meanLoss(1, { clip_low_threshold: 0.5, clip_high_threshold: 2 })).toBeCloseTo(-ratio, 4);
    expect(await meanLoss(-1)).toBeCloseTo(ratio, 4);
  });
});
