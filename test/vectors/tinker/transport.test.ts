import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { authJwt } from '../adapters/auth-jwt.ts';
import { pollAndRetry } from '../adapters/poll-and-retry.ts';
import { judge } from '../judge.ts';
import { readVectorFile } from '../vector-file.ts';

const fixtures = fileURLToPath(new URL('../../fixtures/tinker/', import.meta.url));

describe.each([pollAndRetry, authJwt])('recorded $family', (adapter) => {
  const family = readVectorFile(`${fixtures}${adapter.family}.jsonl`, `${adapter.family}.jsonl`);

  it.concurrent.each(family.cases)('$id: $note', async (vector) => {
    expect(await judge(adapter, family, vector)).toEqual({ outcome: 'passed' });
  });
});
