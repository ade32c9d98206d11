import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { DriveResults } from '../tinker-drive/recorder.ts';
import { judge, valueDifferences } from './compare.ts';
import { judgeKnownGood } from './known-good.ts';
import { PEERS } from './peers.ts';

const recorded = (file: string) => JSON.parse(readFileSync(new URL(`../fixtures/tinker/${file}`, import.meta.url), 'utf8')) as DriveResults;
const ok = (result: unknown) => ({ step: 'a', s: 1, result });
const refused = (error: string) => ({ step: 'a', s: 1, error });

test('values agree within 1e-4 and are named where they do not', () => {
  const there = { outputs: [{ logprobs: [-7.2571, -0] }], model: 'model_3c50ed81', time: '2026-11-30' };
  const here = { outputs: [{ logprobs: [-7.25715, 0] }], model: 'model_00000000', time: null, extra: null };
  expect(valueDifferences(here, there)).toEqual([]);
  expect(valueDifferences({ ...here, outputs: [{ logprobs: [-7.26, 0] }] }, there)).toEqual([
    'outputs[0].logprobs[0]: -7.26, recorded -7.2571',
  ]);
  expect(valueDifferences([1], [1, 2])).toEqual([': 1 entries, recorded 2']);
  expect(valueDifferences(Number.NaN, 1)).toHaveLength(1);
});

test('an answer and a refusal agree only where that is listed', () => {
  const listed = { kind: 'ours answered', reason: 'why' } as const;
  expect(judge(ok(1), refused('Error code: 422'), undefined).kind).toBe('failed');
  expect(judge(ok(1), refused('Error code: 422'), listed)).toEqual({ kind: 'known', words: 'why' });
  expect(judge(refused('BadRequest: … (400: …)'), ok(1), listed).kind).toBe('failed');
  expect(judge(refused('BadRequest: … (400: …)'), refused('Error code: 400'), undefined).kind).toBe('same');
  expect(judge(refused('RetryLater: … (500: …)'), refused('Error code: 400'), undefined).kind).toBe('failed');
  expect(judge(undefined, ok(1), undefined).kind).toBe('failed');
});

test('a listed difference that does not show is a failure', () => {
  expect(judge(ok(1), ok(1), { kind: 'ours answered', reason: 'why' }).kind).toBe('failed');
  expect(judge(ok(1), ok(1), { kind: 'values', reason: 'why' }).kind).toBe('failed');
  const dropFirst = { kind: 'values', reason: 'why', view: (ours: unknown) => (ours as unknown[]).slice(1) } as const;
  expect(judge(ok([null, 1]), ok([1]), dropFirst).kind).toBe('known');
  expect(judge(ok([null, 2]), ok([1]), dropFirst).kind).toBe('failed');
});

test.each(PEERS)('the recording of $name has the known-good numbers and agrees with itself', ({ recording }) => {
  const results = recorded(recording);
  expect(judgeKnownGood(results).kind).toBe('same');
  for (const step of results.steps) expect(judge(step, step, undefined).kind).toBe('same');
  const wrong = JSON.parse(JSON.stringify(results).replaceAll('-8.1805', '-8.1815')) as DriveResults;
  expect(judgeKnownGood(wrong).kind).toBe('failed');
});

test('the model is the one that the recordings were made with', () => {
  const weights = readFileSync(new URL('./models/tiny-qwen3/model.safetensors', import.meta.url));
  const sha256 = createHash('sha256').update(weights).digest('hex');
  expect(sha256).toBe('1675e1b74150aa88550d77a81fc0a1b064eada45cb88e0ea9251556b6a6425db');
});
