import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';

const here = import.meta.dirname;
const root = path.resolve(here, '..', '..');

/** What the README tells a project to have: its package.json and its tsconfig.json. */
const [ofPackage, ofCompiler] = [...readFileSync(path.join(here, 'README.md'), 'utf8').matchAll(/```json\n(.*?)```/gs)].map(
  ([, text]) => text,
);

let project: string | null = null;
afterEach(() => {
  if (project !== null) rmSync(project, { recursive: true });
  project = null;
});

/** A project that holds nothing but this folder, and the packages. */
function newProject(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'alone-'));
  const isProduct = (file: string) => !file.endsWith('.test.ts') && file !== path.join(here, 'testing');
  cpSync(here, path.join(folder, 'tinker'), { recursive: true, filter: isProduct });
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  writeFileSync(path.join(folder, 'package.json'), ofPackage ?? '');
  writeFileSync(path.join(folder, 'tsconfig.json'), ofCompiler ?? '');
  return folder;
}

/** What the compiler says: nothing when all is well. */
function typeErrors(folder: string): string {
  const compiler = path.join(root, 'node_modules', '.bin', 'tsc');
  try {
    return execFileSync(compiler, ['-p', folder, '--noEmit'], { encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    return error instanceof Error && 'stdout' in error ? String(error.stdout) : String(error);
  }
}

test('the folder compiles in a project of its own; an import that leaves it does not', () => {
  project = newProject();
  expect(typeErrors(project)).toBe('');
  writeFileSync(
    path.join(project, 'tinker', 'leaving.ts'),
    "import type { TrialId } from '../../core/ids.ts';\nexport type Id = TrialId;\n",
  );
  expect(typeErrors(project)).toContain("Cannot find module '../../core/ids.ts'");
}, 60_000);

test('the packages that the README names are those it is tested with', () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const named = JSON.parse(ofPackage ?? '');
  expect(dependencies).toMatchObject(named.dependencies);
  expect(devDependencies).toMatchObject(named.devDependencies);
});
