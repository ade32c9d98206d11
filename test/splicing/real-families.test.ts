import { expect, it } from 'vitest';
import { FETCH_LIMIT_MS } from '../support/tokenizers.ts';
import { provedFor } from './real-families.ts';

const RUNS = 10;

it.each([
  ['qwen3', {}],
  ['qwen3coder', {}],
  ['qwen35', {}],
  ['llama31', {}],
  ['deepseek_v31', {}],
  // The template of the first V3 closes a turn with a single call by no token.
  ['deepseek_v3', { mayRefuse: /closes no such assistant message/ }],
  ['gptoss', {}],
] as const)(
  'with %s, whatever an agent does, the record is what was sampled, and an intact history goes on',
  async (family, options) => {
    const tally = await provedFor(family, { runs: RUNS, ...options });
    if (process.env.SHOW_TALLY) console.log(family, JSON.stringify(tally));
    expect(tally.goneOn).toBeGreaterThan(RUNS / 2);
  },
  FETCH_LIMIT_MS,
);
