import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';

const here = import.meta.dirname;
const root = path.resolve(here, '..', '..');

/** What the examples take as given, by name. */
const GIVEN = {
  client: 'import("./index.ts").TinkerClient',
  training: 'import("./index.ts").TrainingClient',
  sampler: 'import("./index.ts").Sampler',
  prompt: 'Int32Array',
  modelInput: 'Int32Array',
  targetTokens: 'Int32Array',
  advantages: 'Float32Array',
  weights: 'Float32Array',
  modelId: 'string',
  batch: 'import("./index.ts").Batch',
  sessionId: 'string',
  keep: '(text: string) => Promise<void>',
  kept: '() => Promise<string>',
};

test('the examples of the README compile', () => {
  const blocks = [...readFileSync(path.join(here, 'README.md'), 'utf8').matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code ?? '');
  expect(blocks.length).toBeGreaterThan(4);
  const folder = mkdtempSync(path.join(tmpdir(), 'readme-'));
  try {
    for (const [i, code] of blocks.entries()) {
      const given = Object.entries(GIVEN).filter(([name]) => !new RegExp(`(const|using) (\\{[^}]*\\b)?${name}\\b`).test(code));
      const source = `${code}\n${given.map(([name, type]) => `declare const ${name}: ${type};`).join('\n')}\nexport {};\n`;
      writeFileSync(path.join(folder, `block-${i}.mts`), source.replaceAll('./index.ts', path.join(here, 'index.ts')));
    }
    const config = {
      extends: path.join(root, 'tsconfig.json'),
      include: ['block-*.mts'],
      compilerOptions: { noUnusedLocals: false, typeRoots: [path.join(root, 'node_modules', '@types')] },
    };
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
    const compiler = path.join(root, 'node_modules', '.bin', 'tsc');
    execFileSync(compiler, ['-p', folder, '--noEmit'], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    throw error instanceof Error && 'stdout' in error ? new Error(String(error.stdout)) : error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 60_000);
