import { expect, it } from 'vitest';
import { FETCH_LIMIT_MS } from '../support/tokenizers.ts';
import { provedFor } from './real-families.ts';

const RUNS = 8;

it.each([
  ['qwen3coder', {}],
  ['llama31', {}],
  ['deepseek_v31', {}],
  // The template of the first V3 closes a turn with a single call by no token, and counts calls through the whole conversation.
  ['deepseek_v3', { mayRefuse: /close|anew/ }],
] as const)(
  'with %s, whatever an agent does, the record is what was sampled, and an intact history goes on',
  async (family, options) => {
    const tally = await provedFor(family, { runs: RUNS, ...options });
    expect(tally.goneOn, JSON.stringify(tally)).toBeGreaterThan(RUNS / 2);
  },
  FETCH_LIMIT_MS,
);
