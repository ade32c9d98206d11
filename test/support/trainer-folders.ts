import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { untrainedWeights } from '../trainer-process.ts';

/** An empty folder and the weights of base models, for tests that start trainers themselves. Both go after the last test of the file. */
export function trainerFolders(name: string): { readonly folder: string; readonly weights: string } {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const weights = untrainedWeights();
  afterAll(() => {
    for (const path of [folder, weights]) rmSync(path, { recursive: true });
  });
  return { folder, weights };
}
