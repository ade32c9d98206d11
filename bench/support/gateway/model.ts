import type { ChatRenderer } from '../../../services/gateway/renderer.ts';
import { tinyAsciiRenderer } from '../../../services/gateway/renderers/tiny-ascii.ts';
import type { SampleResult, TokenSampler } from '../../../services/gateway/token-sampler.ts';
import { TOOLS, type Work } from './work.ts';

/** A model for the bench: its template and tokenizer, and how it writes a turn. */
export type BenchModel = {
  readonly name: string;
  readonly renderer: ChatRenderer;
  readonly tools: readonly object[];
  readonly turnText: (turn: Work['turns'][number]) => string;
};

export function tinyModel(): BenchModel {
  return { name: 'tiny', renderer: tinyAsciiRenderer(), tools: [], turnText: ({ thought, command }) => `${thought} ${command}\n` };
}

/** Samples the turns of the work, one after the other, at once: what remains is the gateway's own time. */
export async function scripted({ renderer, turnText }: BenchModel, work: Work): Promise<TokenSampler> {
  const results: SampleResult[] = [];
  for (const turn of work.turns) {
    const tokens = await renderer.tokenize(turnText(turn));
    results.push({ tokens, logprobs: new Float32Array(tokens.length).fill(-0.5), stop: 'stop', promptCacheHitTokens: 0 });
  }
  let next = 0;
  return { version: 'bench', sample: async () => results[next++] as SampleResult };
}

export { TOOLS };
