import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { adapters } from './adapters/index.ts';
import { adapterOf, type FamilyAdapter, judge } from './judge.ts';
import { readVectorDir, type VectorCase, type VectorFamily } from './vector-file.ts';

const familiesOf = (name: string) => readVectorDir(fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url)));
const runner = fileURLToPath(new URL('./run.ts', import.meta.url));

function knownCases(family: VectorFamily, adapter: FamilyAdapter | undefined) {
  return family.cases.filter(({ input }) => adapter?.kinds[(input as { kind?: string }).kind ?? '']);
}

async function expectAgreement(family: VectorFamily, adapter: FamilyAdapter | undefined, vector: VectorCase): Promise<void> {
  if (!adapter) throw new Error(`no adapter for ${family.family}`);
  const verdict = await judge(adapter, family, vector);
  expect(['passed', 'differs', 'refused', 'not_applicable'], JSON.stringify(verdict)).toContain(verdict.outcome);
}

describe.each(familiesOf('wmo'))('vectors of $family', (family) => {
  const adapter = adapterOf(adapters, family.family);
  it.each(knownCases(family, adapter))('$id: $note', (vector) => expectAgreement(family, adapter, vector));
});

// Recorded waits take their time: side by side.
describe.each(familiesOf('tinker'))('vectors of $family', (family) => {
  const adapter = adapterOf(adapters, family.family);
  it.concurrent.each(knownCases(family, adapter))('$id: $note', (vector) => expectAgreement(family, adapter, vector));
});

describe('the runner', () => {
  const dir = mkdtempSync(join(tmpdir(), 'vectors-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  const run = (...args: string[]) => execa(process.execPath, [runner, ...args], { reject: false });
  const write = (name: string, value: unknown) => writeFileSync(join(dir, name), JSON.stringify(value));
  const renormalize = (id: string, weight: number, more = {}) => ({
    id,
    input: { kind: 'renormalize', candidates: [[1, -0.5]] },
    expected: { weights: [weight] },
    ...more,
  });

  it('exits 2 and says why when there is nothing to run', async () => {
    expect(await run(join(dir, 'nowhere'))).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('is not a directory') });
    expect(await run(dir)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('holds no vector file') });
  });

  it('says how it is called', async () => {
    expect(await run('--help')).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('usage: npm run vectors -- DIR') });
  });

  it('says how many cases of a family apply', async () => {
    const results = join(dir, 'results');
    mkdirSync(results);
    const failed = { step: 'sample_greedy', error: 'it failed' };
    const sampled = { step: 'sample_greedy', result: { sequences: [] } };
    writeFileSync(join(results, 'results.none.json'), JSON.stringify({ sdk: '1', steps: [failed, { step: 'get_info', result: {} }] }));
    expect((await run(results)).stdout).toMatch(/^results\.none 0 of 2 apply$/m);
    writeFileSync(join(results, 'results.some.json'), JSON.stringify({ sdk: '1', steps: [failed, sampled] }));
    expect((await run(results)).stdout).toMatch(/^results\.some [01]\/2 \(1 not applicable\)$/m);
  });

  it('fails on a wrong value, and neither on an oddity nor on what it does not know', async () => {
    write('a.json', {
      family: 'datums',
      cases: [renormalize('right', 1), renormalize('odd', 0.5, { oddity: 'half' }), { id: 'x', input: { kind: 'new' } }],
    });
    write('b.json', { family: 'weather', cases: [renormalize('rain', 1)] });
    const good = await run(dir);
    expect(good.exitCode).toBe(0);
    expect(good.stdout).toContain('datums 1/3');
    expect(good.stdout).toContain('differs (oddity half): odd');
    expect(good.stdout).toContain('kind new not known yet: 1 cases not run');
    expect(good.stdout).toContain('weather: not known yet');

    write('c.json', { family: 'datums', cases: [renormalize('wrong', 0.5)] });
    const bad = await run(dir);
    expect(bad.exitCode).toBe(1);
    expect(bad.stdout).toContain('FAILED wrong: weights[0]: expected 0.5, got 1');
  });
});
