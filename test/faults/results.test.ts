import { describe, expect, it } from 'vitest';
import { decodeForwardBackwardOutput, decodeSampleResponse, topkRow } from '../../services/tinker/wire/index.ts';
import type { RuleInput } from '../../trainer/faults/plan.ts';
import { firedBy, on, putFaults } from '../support/faults.ts';
import { withFaultyTrainer } from '../support/faulty-trainer.ts';
import { STUDENT, type TrainerFixture } from '../trainer-fixture.ts';
import { textDatum } from '../trainer-process.ts';

/** Faults of the trainer's plan that spoil or hold back results. */

let fixture: TrainerFixture;
let url: string;
let sampler: string;
let model: string;
withFaultyTrainer(async (started) => {
  fixture = started;
  url = fixture.trainer.url;
  sampler = await fixture.sampler({ base_model: STUDENT });
  model = await fixture.createModel();
});

type Answer = Uint8Array | Record<string, unknown>;
let seq = 0;

/** Two sequences of 12 tokens with the prompt's scores, always the same ones. */
const ask = async (): Promise<unknown> =>
  (await fixture.client.post('asample', fixture.sampleBody(sampler, { num_samples: 2, prompt_logprobs: true }))).request_id;
const retrieve = async (requestId: unknown): Promise<Answer> => fixture.client.retrieve(requestId);
const forward = async (): Promise<Answer> => {
  seq += 1;
  return retrieve(await fixture.client.forwardBackward(model, seq, [textDatum('cp a b\n'), textDatum('done\n')], 'cross_entropy', true));
};

const binary = (answer: Answer): Uint8Array => {
  if (!(answer instanceof Uint8Array)) throw new Error(`not a binary result: ${JSON.stringify(answer)}`);
  return answer;
};
const sampleOf = (answer: Answer) => {
  const { sequences, promptLogprobs } = decodeSampleResponse(binary(answer));
  return {
    tokens: sequences.map(({ tokens }) => [...tokens]),
    samples: sequences.map(({ logprobs }) => logprobs && [...logprobs]),
    prompt: promptLogprobs && [...promptLogprobs],
  };
};
const lossOf = (answer: Answer) =>
  decodeForwardBackwardOutput(binary(answer)).lossFnOutputs.map(({ logprobs }) => logprobs && Array.from(logprobs.values, Number));

const undisturbed = async () => sampleOf(await retrieve(await ask()));
const onSample = (fault: RuleInput['fault'], more = {}) => on('retrieve_future', fault, { for: 'Sample', ...more });

describe('results of samples', () => {
  it.each([
    ['nan', Number.NaN],
    ['null', Number.NaN],
    ['inf', Number.POSITIVE_INFINITY],
    ['-inf', Number.NEGATIVE_INFINITY],
  ] as const)('%s at chosen places of what was sampled; all else as it was', async (value, seen) => {
    const { tokens, samples, prompt } = await undisturbed();
    await putFaults(url, onSample({ kind: 'logprobs', value, in: 'samples', at: [0, -2] }));
    expect(await undisturbed()).toEqual({
      tokens,
      samples: samples.map((row) => row?.map((old, i) => (i === 0 || i === 10 ? seen : old))),
      prompt,
    });
    expect(await undisturbed()).toEqual({ tokens, samples, prompt });
    expect(await firedBy(url)).toEqual([1]);
  });

  it('a share of the places, by the seed', async () => {
    const { samples } = await undisturbed();
    const spoiled = async (seed: number) => {
      await putFaults(url, onSample({ kind: 'logprobs', value: 'nan', share: 0.4 }, { seed }));
      return undisturbed();
    };
    const one = await spoiled(1);
    const hits = one.samples.flat().filter((value) => Number.isNaN(value)).length;
    expect(hits).toBeGreaterThan(3);
    expect(hits).toBeLessThan(20);
    expect(one.samples.flat().filter((value, i) => !Object.is(value, samples.flat()[i])).length).toBe(hits);
    expect(await spoiled(1)).toEqual(one);
    expect(await spoiled(2)).not.toEqual(one);
  });

  it.each(['gaussian', 'uniform'] as const)('%s noise on the scores of a prompt', async (distribution) => {
    const { tokens, samples, prompt } = await undisturbed();
    const jittered = async (seed: number) => {
      await putFaults(url, onSample({ kind: 'jitter', amount_nats: 0.01, distribution, in: 'prompt' }, { seed }));
      return undisturbed();
    };
    const one = await jittered(1);
    expect([one.tokens, one.samples]).toEqual([tokens, samples]);
    const moved = (one.prompt ?? []).slice(1).map((value, i) => Math.abs(value - (prompt?.[i + 1] ?? 0)));
    expect(one.prompt?.[0]).toBeNaN();
    expect(Math.min(...moved)).toBeGreaterThan(0);
    expect(Math.max(...moved)).toBeLessThan(distribution === 'uniform' ? 0.0101 : 0.05);
    expect(await jittered(1)).toEqual(one);
    expect(await jittered(2)).not.toEqual(one);
  });

  it('noise on the tables of likeliest tokens: every row likeliest first still, and what is masked stays masked', async () => {
    const more = { prompt_logprobs: true, topk_prompt_logprobs: 3, topk_sample_logprobs: 3 };
    const tables = async () => {
      const answer = await fixture.client.call('asample', fixture.sampleBody(sampler, more));
      const { sequences, topkPromptLogprobs } = decodeSampleResponse(binary(answer));
      return { samples: sequences[0]?.topk ?? null, prompt: topkPromptLogprobs };
    };
    const before = await tables();
    await putFaults(url, onSample({ kind: 'jitter', amount_nats: 0.5, in: 'prompt' }));
    const { samples, prompt } = await tables();
    expect(samples).toEqual(before.samples);
    expect(prompt?.logprobs).not.toEqual(before.prompt?.logprobs);
    const rows = (table: typeof prompt) => Array.from({ length: table?.length ?? 0 }, (_, i) => (table ? topkRow(table, i) : []));
    expect(rows(prompt)[0]).toEqual([]);
    for (const [i, row] of rows(prompt).entries()) {
      expect(row).toEqual(row.toSorted((a, b) => b.logprob - a.logprob));
      const ids = row.map(({ tokenId }) => tokenId);
      expect(new Set(ids)).toEqual(new Set(rows(before.prompt)[i]?.map(({ tokenId }) => tokenId)));
    }
    await putFaults(url, onSample({ kind: 'jitter', amount_nats: 0.5, in: 'samples' }));
    expect((await tables()).samples).not.toEqual(before.samples);
  });

  it('one log-probability too many, and none at all', async () => {
    const { tokens, samples, prompt } = await undisturbed();
    await putFaults(url, onSample({ kind: 'extra_logprob', in: 'samples' }), onSample({ kind: 'omit_logprobs' }, { nth: 2 }));
    expect(await undisturbed()).toEqual({ tokens, samples: samples.map((row) => [...(row ?? []), -1]), prompt });
    expect(await undisturbed()).toEqual({ tokens, samples: [null, null], prompt: null });
  });

  it('is the same at every poll of one future', async () => {
    await putFaults(url, onSample({ kind: 'jitter', amount_nats: 1 }, { times: 2, seed: 5 }));
    const [first, second] = [await ask(), await ask()];
    const answers = [await retrieve(first), await retrieve(second), await retrieve(first)];
    expect(answers[2]).toEqual(answers[0]);
    expect(answers[1]).not.toEqual(answers[0]);
    expect(await firedBy(url)).toEqual([2]);
  });

  it('counts only results that have what it spoils', async () => {
    await putFaults(url, onSample({ kind: 'logprobs', value: 'nan', in: 'loss' }), on('*', { kind: 'omit_logprobs', in: 'prompt' }));
    await forward();
    await fixture.client.call('asample', fixture.sampleBody(sampler));
    expect(await firedBy(url)).toEqual([0, 0]);
    expect((await undisturbed()).prompt).toBeNull();
    expect(await firedBy(url)).toEqual([0, 1]);
  });

  it('as JSON, where null is null', async () => {
    const { tokens, samples } = await undisturbed();
    await putFaults(url, onSample({ kind: 'json_result' }), onSample({ kind: 'logprobs', value: 'null', in: 'samples', at: [1] }));
    expect(await retrieve(await ask())).toMatchObject({
      sequences: tokens.map((row, i) => ({
        tokens: row,
        logprobs: samples[i]?.map((value, at) => (at === 1 ? null : value)),
        stop_reason: 'length',
      })),
      prompt_logprobs: [null, ...Array.from({ length: 15 }, () => expect.any(Number))],
    });
  });
});

describe('results of losses', () => {
  it.each([
    ['overwritten', { kind: 'logprobs', value: 'nan', at: [0] }, (row: number[]) => [Number.NaN, ...row.slice(1)]],
    ['one too many', { kind: 'extra_logprob' }, (row: number[]) => [...row, -1]],
    ['left out', { kind: 'omit_logprobs' }, () => undefined],
  ] satisfies [string, RuleInput['fault'], (row: number[]) => unknown][])('%s', async (_, fault, expected) => {
    const rows = lossOf(await forward());
    await putFaults(url, on('retrieve_future', fault, { for: 'Forward' }));
    expect(lossOf(await forward())).toEqual(rows.map((row) => expected(row ?? [])));
    expect(lossOf(await forward())).toEqual(rows);
  });

  it('as JSON', async () => {
    const [first, second] = lossOf(await forward());
    await putFaults(url, on('retrieve_future', { kind: 'json_result' }, { for: 'Forward' }));
    expect(await forward()).toEqual({
      loss_fn_output_type: 'ArrayRecord',
      loss_fn_outputs: [
        { logprobs: { data: first, dtype: 'float32', shape: [6] } },
        { logprobs: { data: second, dtype: 'float32', shape: [4] } },
      ],
      metrics: expect.objectContaining({ 'loss:sum': expect.any(Number) }),
    });
  });
});

describe('pending', () => {
  const poll = (requestId: unknown) => fixture.client.send('POST', 'retrieve_future', { request_id: requestId });

  it('for a number of polls of each future', async () => {
    const fault = { kind: 'pending', polls: 2, queue_state: 'paused_rate_limit', reason: 'later' } as const;
    await putFaults(url, on('retrieve_future', fault, { for: 'SaveWeights', times: 1 }));
    seq += 2;
    const save = (at: number) => fixture.client.post('save_weights', { model_id: model, seq_id: at, path: `p${at}`, overwrite: false });
    const { request_id: held } = await save(seq - 1);
    const { request_id: free } = await save(seq);
    const startMs = performance.now();
    const again = { type: 'try_again', request_id: held, queue_state: 'paused_rate_limit', queue_state_reason: 'later' };
    expect((await poll(held)).body).toEqual(again);
    expect((await poll(free)).body).toHaveProperty('path');
    expect((await poll(held)).body).toEqual(again);
    expect((await poll(held)).body).toHaveProperty('path');
    expect(performance.now() - startMs).toBeLessThan(5000);
    expect(await firedBy(url)).toEqual([1]);
  });

  it('for a time', async () => {
    await putFaults(url, on('retrieve_future', { kind: 'pending', ms: 300, hold_ms: 50 }), on('retrieve_future', { kind: 'json_result' }));
    const requestId = await ask();
    const startMs = performance.now();
    const answers: unknown[] = [];
    do answers.push((await poll(requestId)).body.type);
    while (answers.at(-1) === 'try_again' && answers.length < 20);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(299);
    expect(answers.length).toBeGreaterThan(3);
    expect(answers.length).toBeLessThan(9);
  });
});
