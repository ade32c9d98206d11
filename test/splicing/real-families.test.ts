import { expect, it } from 'vitest';
import { FETCH_LIMIT_MS } from '../support/tokenizers.ts';
import { provedFor } from './real-families.ts';

const RUNS = 8;

it.each(['qwen3', 'qwen35', 'gptoss'] as const)(
  'with %s, whatever an agent does, the record is what was sampled, and an intact history goes on',
  async (family) => {
    const tally = await provedFor(family, { runs: RUNS });
    expect(tally.goneOn, JSON.stringify(tally)).toBeGreaterThan(RUNS / 2);
  },
  FETCH_LIMIT_MS,
);
