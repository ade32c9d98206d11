import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { inspectBundle, sizeText } from './bundle.ts';

it('the workflow code of this project is pure, and its size is told by room', async () => {
  const report = await inspectBundle(PROJECT_ROOT);
  expect(report.impurities).toEqual([]);
  expect(report.sources.map(([place]) => place)).toEqual(expect.arrayContaining(['workflows', 'core', 'services', 'zod']));
  expect(sizeText(report)).toMatch(/^\d+ kB; sources: .*zod \d+ kB/);
});

describe('a project with a violation', () => {
  let root: string;
  const write = (file: string, text: string) => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  };
  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), 'stillroom-bundle-'));
    symlinkSync(path.join(PROJECT_ROOT, 'node_modules'), path.join(root, 'node_modules'));
    const beside = ['payload-converter', 'payload-guard', 'failure-guard', 'workflow-guards'].map((name) => `services/temporal/${name}.ts`);
    for (const file of beside) write(file, readFileSync(path.join(PROJECT_ROOT, file), 'utf8'));
    write('workflows/fair-share.ts', 'export const interceptors = () => ({});');
    write('workflows/index.ts', "export { step } from './step.ts';");
    write('workflows/step.ts', "import { now } from '../core/now.ts';\nexport const step = async () => now();");
    write('core/now.ts', "import type { Client } from '@temporalio/client';\nexport const now = (_?: Client) => 1;");
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it.each([
    ["import { hrtime } from 'node:process';\nexport const now = () => hrtime();", ['node:process'], /built-in of Node/],
    ["import { readFileSync } from 'fs';\nexport const now = () => readFileSync('x');", ['fs'], /built-in of Node/],
    ["import { inspect } from 'node:util';\nexport const now = () => inspect(1);", ['node:util'], /built-in of Node/],
    ["import limit from 'p-limit';\nexport const now = () => limit(1);", ['npm:p-limit/index.js'], /only the packages/],
    ["import { act } from '../activities/act.ts';\nexport const now = () => act();", ['activities/act.ts'], /import its types/],
  ])('%s', async (source, end, rule) => {
    write('activities/act.ts', "import { readFileSync } from 'node:fs';\nexport const act = () => readFileSync('x');");
    write('core/now.ts', source);
    expect((await inspectBundle(root)).impurities).toEqual([
      { chain: ['workflows/index.ts', 'workflows/step.ts', 'core/now.ts', ...end], rule: expect.stringMatching(rule) },
    ]);
  });

  it('types alone do not get in', async () => {
    expect(await inspectBundle(root)).toMatchObject({ impurities: [], bytes: expect.any(Number) });
  });

  it('code that cannot be bundled is told in words', async () => {
    write('core/now.ts', "import { gone } from './gone.ts';\nexport const now = () => gone;");
    await expect(inspectBundle(root)).rejects.toThrow(/gone\.ts/);
  });
});
