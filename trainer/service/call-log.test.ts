import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CallLog, type LoggedCall, promptDigest } from './call-log.ts';
import { done, gradient, RunsFixture, step } from './testing/runs-fixture.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'call-log-'));
  file = join(folder, 'calls.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true }));

const call = (request: string): LoggedCall => ({
  at: '2026-01-01T00:00:00.000Z',
  kind: 'sample',
  request,
  session: 's',
  owner: 's:sample:0',
  seq: 1,
  weights: 'base',
  digest: '00',
  prompt: 3,
  sampled: 2,
  scored: 0,
  trained: 0,
  failed: null,
});
const requests = () =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as LoggedCall).request);

test('a request is counted once, also by the next life of the service', () => {
  const log = CallLog.open(file);
  log.add(call('a'));
  log.add(call('b'));
  log.add(call('a'));
  CallLog.open(file).add(call('b'));
  CallLog.open(file).add(call('c'));
  expect(requests()).toEqual(['a', 'b', 'c']);
});

test('a line that a kill cut short is taken away, and its call may be counted again', () => {
  CallLog.open(file).add(call('a'));
  appendFileSync(file, JSON.stringify(call('b')).slice(0, 40));
  const log = CallLog.open(file);
  log.add(call('b'));
  log.add(call('c'));
  expect(requests()).toEqual(['a', 'b', 'c']);
});

test('a call is counted before its result can be had', async () => {
  const log = CallLog.open(file);
  const fixture = new RunsFixture({ add: (entry) => log.add(entry) });
  const run = fixture.begin();
  await done(run, 0);
  run.submit(1, gradient, new Uint8Array());
  run.submit(2, step);
  await done(run, 2);
  expect(requests()).toEqual(['s:train:0:create', 's:train:0:1', 's:train:0:2']);
  fixture.runs.close();
  fixture.restart();
  expect(fixture.runs.get('s:train:0').future(2).kind).toBe('json');
  expect(requests()).toHaveLength(3);
  fixture.remove();
});

test('a call whose counting fails is not answered', async () => {
  const fatal: unknown[] = [];
  const full = () => {
    throw new Error('disk full');
  };
  const fixture = new RunsFixture({ add: full }, (reason) => fatal.push(reason));
  const run = fixture.begin();
  await expect.poll(() => fatal).toEqual([new Error('disk full')]);
  expect(run.future(0).kind).toBe('pending');
  fixture.remove();
});

test('the digest is of the ids, wherever they lie', () => {
  const ids = Int32Array.of(7, 1, 2, 3);
  expect(promptDigest(ids.subarray(1))).toBe(promptDigest(Int32Array.of(1, 2, 3)));
  expect(promptDigest(ids)).not.toBe(promptDigest(Int32Array.of(1, 2, 3)));
});
