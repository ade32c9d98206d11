import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Sampler, TinkerClient } from '../services/tinker/index.ts';
import { loadWeights, promptLogprobs } from '../trainer/engine/index.ts';
import { sdkPython } from './tinker-sdk/python.ts';
import { KEY, startTrainerProcess, type Trainer } from './trainer-process.ts';

const floats = z.array(z.number());
const answerSchema = z.object({
  teacher: z.object({ tokens: z.array(z.number()), logprobs: floats, stop_reason: z.string(), scores: z.array(z.number().nullable()) }),
  student: z.object({
    info: z.string(),
    loss_before: z.number(),
    loss_after: z.number(),
    logprobs_before: floats,
    logprobs_after: floats,
    restored: floats,
    step: z.record(z.string(), z.number()),
    named: z.array(z.number().nullable()),
    unnamed: z.array(z.number().nullable()),
    paths: z.array(z.string()),
  }),
});
type Answer = z.infer<typeof answerSchema>;

const ids = (text: string): number[] => [...text].map((char) => char.charCodeAt(0));
const prompt = ids('files key sun\ntask copy sun to map and delete key\n$ ');
const text = ids('files key sun\ntask write 4 to key\n$ echo 4 > key\n');
const seed = 11;
const maxTokens = 24;
const state = mkdtempSync(join(tmpdir(), 'tinker-sdk-'));
let trainer: Trainer;
let sdk: Answer;
let client: TinkerClient;
let teacher: Sampler;

beforeAll(async () => {
  const python = await sdkPython();
  trainer = await startTrainerProcess({ state });
  client = await TinkerClient.connect({ baseUrl: trainer.url, apiKey: KEY });
  teacher = await client.sampler({ baseModel: 'stillroom/tiny-teacher' });
  const { stdout } = await execa(python, [fileURLToPath(new URL('./tinker-sdk/drive.py', import.meta.url))], {
    input: JSON.stringify({ prompt, seed, max_tokens: maxTokens, text }),
    env: { TINKER_BASE_URL: trainer.url, TINKER_API_KEY: KEY, TINKER_TELEMETRY: '0' },
    timeout: 120_000,
  });
  sdk = answerSchema.parse(JSON.parse(stdout));
}, 600_000);
afterAll(async () => {
  await client.close();
  await trainer.kill('SIGTERM');
  rmSync(state, { recursive: true });
});

function expectClose(actual: ArrayLike<number | null>, expected: ArrayLike<number | null>, tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i += 1) {
    expect(Math.abs((actual[i] ?? Number.NaN) - (expected[i] ?? Number.NaN)), `position ${i}`).toBeLessThan(tolerance);
  }
}

describe('the official Tinker SDK on the embedded trainer', () => {
  it('samples from the teacher what our client samples, with the same log-probabilities', async () => {
    const ours = await teacher.sample({ prompt: Int32Array.from(prompt), maxTokens, temperature: 1, stopTokens: [10], seed });
    expect(sdk.teacher.tokens).toEqual([...ours.tokens]);
    expect(sdk.teacher.stop_reason).toBe(ours.stop);
    expectClose(sdk.teacher.logprobs, ours.logprobs, 1e-5);
  });

  it('scores its sample as it was sampled, as our client scores it, and as the engine does by itself', async () => {
    const whole = Int32Array.from([...prompt, ...sdk.teacher.tokens]);
    expect(sdk.teacher.scores[0]).toBeNull();
    expectClose(sdk.teacher.scores.slice(prompt.length), sdk.teacher.logprobs, 1e-5);
    const ours = await teacher.promptLogprobs(whole);
    expectClose(sdk.teacher.scores.slice(1), ours.logprobs.slice(1), 1e-5);
    const file = fileURLToPath(new URL('../trainer/weights/tiny-teacher.safetensors', import.meta.url));
    const engine = promptLogprobs(loadWeights(readFileSync(file)), [whole])[0] ?? new Float32Array();
    expectClose(sdk.teacher.scores.slice(1), engine.slice(1), 1e-5);
  });

  it('trains: a step lowers the loss, and snapshots and restored states score as the trained model', () => {
    const { student } = sdk;
    expect(student.info).toBe('stillroom-tiny-ascii');
    expect(student.loss_before).toBeCloseTo(-student.logprobs_before.reduce((a, b) => a + b, 0), 3);
    expect(student.loss_after).toBeLessThan(student.loss_before - 0.1);
    expect(student.step['grad_norm:mean']).toBeGreaterThan(0);
    for (const scores of [student.named.slice(1), student.unnamed.slice(1), student.restored]) {
      expectClose(scores, student.logprobs_after, 1e-5);
    }
    expect(student.paths.map((path) => path.replace(/^tinker:\/\/[^/]+/, ''))).toEqual(['/weights/sdk', '/sampler_weights/sdk']);
  });
});
