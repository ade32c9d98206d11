import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { Recorder } from './recorder.ts';

const folder = mkdtempSync(join(tmpdir(), 'recorder-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a step that takes too long is aborted, and the next one begins when it has ended', async () => {
  const recorder = new Recorder({ sdk: 'x', out: join(folder, 'out.json'), skip: new Set(), stepTimeoutMs: 60_000 });
  const happened: string[] = [];
  const slow = async (signal: AbortSignal) => {
    await sleep(30_000, undefined, { signal }).catch(() => sleep(100));
    happened.push('slow ended');
    return { value: 1, result: 1 };
  };
  const next = async () => {
    happened.push('next began');
    return { value: 2, result: 2 };
  };
  expect(await recorder.step('slow', slow, 50)).toBeNull();
  expect(await recorder.step('next', next)).toBe(2);
  expect(happened).toEqual(['slow ended', 'next began']);
  expect(recorder.results.steps.map(({ step, error }) => [step, error])).toEqual([
    ['slow', 'timeout'],
    ['next', undefined],
  ]);
});

test('a step that cannot be aborted holds the next one up for a moment only', async () => {
  const recorder = new Recorder({ sdk: 'x', out: join(folder, 'out.json'), skip: new Set(), stepTimeoutMs: 50 });
  expect(await recorder.step('deaf', () => new Promise<never>(() => {}))).toBeNull();
  expect(recorder.results.steps).toMatchObject([{ step: 'deaf', error: 'timeout' }]);
});
