import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { loadWeights } from '../trainer/engine/index.ts';
import { naiveDistributions } from '../trainer/engine/naive-model.ts';
import { sdkPython } from './tinker-sdk/python.ts';
import { STUDENT } from './trainer-fixture.ts';
import { KEY, startTrainerProcess } from './trainer-process.ts';

const numbers = z.array(z.number());
const scores = z.array(z.number().nullable());
const sample = z.object({
  tokens: numbers,
  stop_reason: z.string(),
  target: z.tuple([scores, numbers]).nullable(),
  alternatives: z.tuple([numbers, numbers, numbers]).nullable(),
});
const loss = z.tuple([z.number(), numbers, numbers]);
const answerSchema = z.object({
  sampling: z.object({
    plain: sample,
    stopped: sample.extend({ word: z.string() }),
    best: sample,
    greedy: sample,
    dense: sample,
    sparse: sample,
    alternatives: sample,
    scores,
    last: scores,
  }),
  training: z.object({
    dense: loss,
    sparse: loss,
    one: numbers,
    refused: z.record(z.string(), z.string()),
    before: z.array(scores),
    after: z.array(scores),
    moved: numbers,
    model: z.string(),
    snapshot: z.string(),
    lists: z.array(z.record(z.string(), z.tuple([z.boolean(), z.boolean()]))),
    sessions: z.array(z.string()),
    session: z.object({ id: z.string(), runs: z.array(z.string()), samplers: z.array(z.string()) }),
    sampler: z.string(),
  }),
});

const text = Int32Array.from('files key\n$ ', (char) => char.charCodeAt(0));
/** Log-probability of every token at every position but the first, by the slow reference. */
const distributions = naiveDistributions(
  loadWeights(readFileSync(fileURLToPath(new URL('../trainer/weights/tiny-student.safetensors', import.meta.url)))),
  text,
);
const close = (value: number | null | undefined, expected: number | undefined): void =>
  expect(Math.abs((value ?? Number.NaN) - (expected ?? Number.NaN))).toBeLessThan(1e-3);

let answer: z.infer<typeof answerSchema>;
beforeAll(async () => {
  const state = mkdtempSync(join(tmpdir(), 'tinker-extras-'));
  const trainer = await startTrainerProcess({ state });
  const { stdout } = await execa(await sdkPython(), [fileURLToPath(new URL('./tinker-sdk/extras.py', import.meta.url))], {
    input: JSON.stringify({ text: [...text] }),
    env: { TINKER_BASE_URL: trainer.url, TINKER_API_KEY: KEY, TINKER_TELEMETRY: '0' },
    timeout: 120_000,
  });
  answer = answerSchema.parse(JSON.parse(stdout));
  await trainer.kill('SIGTERM');
  rmSync(state, { recursive: true });
}, 600_000);

describe('the official SDK, sampling', () => {
  it('ends behind a stop string, which is part of the answer', () => {
    const { plain, stopped } = answer.sampling;
    const whole = String.fromCharCode(...plain.tokens);
    expect(String.fromCharCode(...stopped.tokens)).toBe(whole.slice(0, whole.indexOf(stopped.word) + stopped.word.length));
    expect([stopped.stop_reason, plain.stop_reason]).toEqual(['stop', 'length']);
  });

  it('takes the likeliest token with top_k 1, as it does at temperature 0', () => {
    expect(answer.sampling.best.tokens).toEqual(answer.sampling.greedy.tokens);
    expect(answer.sampling.best.tokens).not.toEqual(answer.sampling.plain.tokens.slice(0, 12));
  });

  it('scores chosen tokens at chosen positions, and answers in the layout it was asked in', () => {
    const rows = text.length - 1;
    const [dense, shape] = answer.sampling.dense.target ?? [];
    expect(shape).toEqual([rows, 2]);
    expect(dense?.[0]).toBeNull();
    dense?.slice(1).forEach((value, i) => {
      close(value, distributions[Math.floor((i + 1) / 2)]?.[7]);
    });
    const [sparse, wide] = answer.sampling.sparse.target ?? [];
    expect(wide).toEqual([rows, 3]);
    expect(sparse).toHaveLength(2);
    close(sparse?.[0], distributions[0]?.[50]);
    close(sparse?.[1], distributions[rows - 1]?.[51]);
  });

  it('draws other tokens for the positions of a prompt', () => {
    const [tokens, logprobs, shape] = answer.sampling.alternatives.alternatives ?? [];
    expect(shape).toEqual([text.length - 1, 4]);
    tokens?.forEach((token, i) => {
      close(logprobs?.[i], distributions[Math.floor(i / 4)]?.[token]);
    });
    expect(answer.sampling.alternatives.tokens).toEqual(answer.sampling.plain.tokens.slice(0, 1));
  });

  it('scores only the end of a prompt when asked to', () => {
    const { scores: all, last } = answer.sampling;
    expect(last.map((value) => value !== null)).toEqual(all.map((_, i) => i >= all.length - 2));
    expect(last.slice(-2)).toEqual(all.slice(-2));
  });
});

describe('the official SDK, training', () => {
  it('weighs several targets a row, dense and sparse alike', () => {
    const { dense, sparse, one } = answer.training;
    expect(sparse).toEqual(dense);
    const [sum, logprobs, shape] = dense;
    expect(shape).toEqual([text.length - 1, 2]);
    expect(logprobs.filter((_, i) => i % 2 === 0)).toEqual(one);
    logprobs.forEach((value, i) => {
      if (i % 2 === 1) close(value, distributions[Math.floor(i / 2)]?.[65]);
    });
    expect(sum).toBeCloseTo(-logprobs.reduce((total, value, i) => total + value * (i % 2 === 0 ? 0.75 : 0.25), 0), 3);
  });

  it('is told at once what cannot be carried out', () => {
    const { refused, snapshot } = answer.training;
    expect(refused.mask).toMatch(/BadRequestError: .* 400 .*data\[0\].loss_fn_inputs: unknown key 'mask'.*allowed: target_tokens, weights/);
    expect(refused.length).toMatch(/400 .*data\[0\].loss_fn_inputs.target_tokens: 10 values, but model_input has 11 tokens/);
    expect(refused['sampler as state']).toContain(`400 - {'detail': "path: '${snapshot}' are weights to sample from`);
  });

  it('leaves snapshots as they were, named and nameless', () => {
    const { before, after, moved, one } = answer.training;
    expect(after).toEqual(before);
    for (const snapshot of before) {
      for (const [i, value] of snapshot.slice(1).entries()) close(value, one[i]);
    }
    expect(Math.max(...moved.map((value, i) => value - (one[i] ?? 0)))).toBeGreaterThan(1);
  });

  it('finds named checkpoints in lists with their flag and their time, and the session with all that is in it', () => {
    const { lists, session, sessions, model, sampler } = answer.training;
    const both = (state: [boolean, boolean], snapshot: [boolean, boolean]) => ({
      'weights/state': state,
      'sampler_weights/snapshot': snapshot,
    });
    expect(lists).toEqual([
      both([false, false], [false, false]),
      both([true, false], [false, true]),
      both([false, false], [false, false]),
      { 'sampler_weights/snapshot': [false, false] },
    ]);
    expect(session).toEqual({ id: expect.any(String), runs: [model], samplers: [0, 1, 2].map((n) => `${session.id}:sample:${n}`) });
    expect([sessions, sampler]).toEqual([[session.id], STUDENT]);
  });
});
