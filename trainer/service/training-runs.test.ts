import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { done, RunsFixture, save, valueIn } from './testing/runs-fixture.ts';

let fixture: RunsFixture;
beforeEach(() => {
  fixture = new RunsFixture();
});
afterEach(() => fixture.remove());

const openFiles = (): number => readdirSync('/dev/fd').length;

it('keeps no file open for a model, at work or taken up at a start', async () => {
  const before = openFiles();
  const lora = { rank: 1, seed: 1, trainAttn: true, trainMlp: true };
  const model = { sessionId: 's', baseModel: 'base', lora, userMetadata: null };
  const runs = Array.from({ length: 300 }, (_, modelSeqId) => fixture.runs.begin({ ...model, modelSeqId }, { op: 'create' }));
  await Promise.all(runs.map((run) => done(run, 0)));
  expect(openFiles()).toBeLessThan(before + 20);
  fixture.restart();
  expect(fixture.runs.all()).toHaveLength(300);
  expect(openFiles()).toBeLessThan(before + 20);
  const last = fixture.runs.get('s:train:299');
  last.submit(1, save('a'));
  await done(last, 1);
  expect(valueIn(last, 'a')).toBe(0);
}, 30_000);
