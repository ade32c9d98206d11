import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { Recorder, ServiceGone } from './recorder.ts';
import { OutUnwritable, ResultsFile } from './results-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'recorder-'));
afterAll(() => rmSync(folder, { recursive: true }));
const out = join(folder, 'out.json');
const settings = { sdk: 'x', out: new ResultsFile(out), skip: new Set<string>(), isServiceThere: async () => true };
const fails = () => Promise.reject(new Error('no answer'));

test('a step that takes too long is aborted, and the next one begins when it has ended', async () => {
  const recorder = new Recorder({ ...settings, stepTimeoutMs: 60_000 });
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
  const recorder = new Recorder({ ...settings, stepTimeoutMs: 50 });
  expect(await recorder.step('deaf', () => new Promise<never>(() => {}))).toBeNull();
  expect(recorder.results.steps).toMatchObject([{ step: 'deaf', error: 'timeout' }]);
});

test('a step that fails ends the drive when the service is not there, and is written', async () => {
  let isThere = true;
  const recorder = new Recorder({ ...settings, stepTimeoutMs: 60_000, isServiceThere: async () => isThere });
  expect(await recorder.step('first', fails)).toBeNull();
  isThere = false;
  expect(await recorder.step('second', async () => ({ value: 1, result: 1 }))).toBe(1);
  await expect(recorder.step('third', fails)).rejects.toThrow(ServiceGone);
  expect(JSON.parse(readFileSync(out, 'utf8'))).toMatchObject({ steps: [{ error: 'Error: no answer' }, { result: 1 }, { step: 'third' }] });
});

test('results that can no longer be written end the drive, and leave nothing half', async () => {
  const gone = join(folder, 'gone');
  mkdirSync(gone);
  const recorder = new Recorder({ ...settings, out: new ResultsFile(join(gone, 'out.json')), stepTimeoutMs: 60_000 });
  expect(readdirSync(gone)).toEqual([]);
  mkdirSync(join(gone, 'out.json'));
  await expect(recorder.step('first', fails)).rejects.toThrow(OutUnwritable);
  expect(readdirSync(gone)).toEqual(['out.json']);
});
