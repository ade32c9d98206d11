import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { importsOf } from './imports.ts';
import { violationsIn, violationsUnder } from './layers.ts';

describe('the arrows between rooms', () => {
  it.each([
    ['core/gate/gate.ts', "import { z } from 'zod';", true],
    ['core/gate/gate.ts', "import type { Span } from '../tokens/span.ts';", true],
    ['core/gate/gate.ts', "import { readFileSync } from 'node:fs';", false],
    ['core/gate/gate.ts', "import { FileObjectStore } from '../../services/blobs/file-object-store.ts';", false],
    ['core/gate/gate.ts', "import type { BlobStore } from '../../services/blobs/blob-store.ts';", false],
    ['workflows/step.ts', "import { judge } from '../core/gate/gate.ts';", true],
    ['workflows/step.ts', "import type { Trial } from '../activities/rollouts.ts';", true],
    ['workflows/step.ts', "import { createRollouts } from '../activities/rollouts.ts';", false],
    ['workflows/step.ts', "import { type Trial } from '../activities/rollouts.ts';", false],
    ['workflows/step.ts', "import type { BlobStore } from '../services/blobs/blob-store.ts';", false],
    ['workflows/step.ts', "import { Client } from '@temporalio/client';", false],
    ['activities/training.ts', "import { TinkerClient } from '../services/tinker/index.ts';", true],
    ['activities/training.ts', "import { step } from '../workflows/step.ts';", false],
    ['services/gateway/app.ts', "import type { Span } from '../../core/tokens/span.ts';", true],
    ['services/gateway/app.ts', "import { merge } from '../../core/tokens/merge.ts';", false],
    ['services/gateway/app.ts', "import type { BlobStore } from '../blobs/blob-store.ts';", true],
    ['services/gateway/app.ts', "import { FileObjectStore } from '../blobs/file-object-store.ts';", false],
    ['services/gateway/deep/app.ts', "import { route } from '../routes.ts';", true],
    ['trainer/service/app.ts', "import { decode } from '../../services/tinker/wire/index.ts';", true],
    ['trainer/service/app.ts', "import { TinkerClient } from '../../services/tinker/client.ts';", false],
    ['client/cli.ts', "import { confirmCost } from '../workflows/messages.ts';", true],
    ['client/cli.ts', "import { distill } from '../workflows/distill.ts';", false],
    ['client/cli.ts', "const rollouts = await import('../activities/rollouts.ts');", false],
    ['client/cli.ts', "export { rollouts } from '../activities/rollouts.ts';", false],
    ['client/cli.ts', "export * from '../activities/rollouts.ts';", false],
    ['client/cli.ts', "type Rollouts = import('../activities/rollouts.ts').Rollouts;", false],
    ['workflows/step.test.ts', "import { createRollouts } from '../activities/rollouts.ts';", true],
    ['worker.ts', "import { createRollouts } from './activities/rollouts.ts';", true],
    ['bench/learn.ts', "import { distill } from '../workflows/distill.ts';", true],
  ])('%s: %s → allowed: %s', (file, source, allowed) => {
    expect(violationsIn(file, source).length === 0).toBe(allowed);
  });

  it('says where, what and why', () => {
    expect(violationsIn('core/a.ts', "\n\nimport { b } from '../client/b.ts';\n")).toEqual([
      { file: 'core/a.ts', line: 3, specifier: '../client/b.ts', rule: 'core may not import client/b' },
    ]);
  });
});

describe('a tree on disk', () => {
  const dirs: string[] = [];
  afterEach(() => dirs.splice(0).forEach((dir) => void rmSync(dir, { recursive: true })));

  it('is clean until one bad import is written into it', () => {
    const root = mkdtempSync(path.join(tmpdir(), 'stillroom-layers-'));
    dirs.push(root);
    for (const room of ['core', 'services/blobs', 'node_modules/core']) mkdirSync(path.join(root, room), { recursive: true });
    writeFileSync(path.join(root, 'core/a.ts'), 'export const a = 1;\n');
    writeFileSync(path.join(root, 'node_modules/core/a.ts'), "import '../../services/blobs/b.ts';\n");
    expect(violationsUnder(root)).toEqual([]);

    writeFileSync(path.join(root, 'core/bad.ts'), "import { b } from '../services/blobs/b.ts';\n");
    expect(violationsUnder(root)).toMatchObject([{ file: 'core/bad.ts', specifier: '../services/blobs/b.ts' }]);
  });
});

it('sees neither comments nor strings as imports', () => {
  const source = ["// import { x } from 'comment';", 'const text = "import y from \'string\'";', "import real from 'real';"].join('\n');
  expect(importsOf(source)).toEqual([{ specifier: 'real', typeOnly: false, line: 3 }]);
});
