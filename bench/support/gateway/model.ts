import type { ChatRenderer } from '../../../services/gateway/renderer.ts';
import { chatRenderer } from '../../../services/gateway/renderers/chat-renderer.ts';
import { tinyAsciiRenderer } from '../../../services/gateway/renderers/tiny-ascii.ts';
import { loadChatTemplate } from '../../../services/gateway/template/chat-template.ts';
import type { SampleResult, TokenSampler } from '../../../services/gateway/token-sampler.ts';
import { loadTokenizer } from '../../../services/gateway/tokenizer/native.ts';
import { testModel } from '../../../test/support/tokenizers.ts';
import { TOOLS, type Work } from './work.ts';

/** A model for the bench: its template and tokenizer, and how it writes a turn. */
export type BenchModel = {
  readonly name: string;
  readonly renderer: ChatRenderer;
  readonly tools: readonly object[];
  readonly turnText: (turn: Work['turns'][number]) => string;
};

/** Qwen3 with its real tokenizer and template: turns of text and a tool call. */
export async function qwen3Model(): Promise<BenchModel> {
  const { folder } = await testModel('qwen3');
  const tokenizer = await loadTokenizer(folder, 'qwen3');
  const template = await loadChatTemplate(folder, { nowMs: Date.now() });
  return {
    name: 'qwen3',
    renderer: await chatRenderer({ name: 'qwen3', tokenizer, template }),
    tools: TOOLS,
    turnText: ({ thought, command }) => {
      const call = JSON.stringify({ name: 'bash', arguments: { command } });
      return `${thought}\n<tool_call>\n${call}\n</tool_call><|im_end|>`;
    },
  };
}

export function tinyModel(): BenchModel {
  return { name: 'tiny', renderer: tinyAsciiRenderer(), tools: [], turnText: ({ thought, command }) => `${thought} ${command}\n` };
}

/**
 * Samples the turns of the work, one after the other, at once: what remains is the gateway's own time. `cpuMs` has the CPU time of its
 * thread from each call to the next, which is that of one turn.
 */
export async function scripted({ renderer, turnText }: BenchModel, work: Work): Promise<TokenSampler & { readonly cpuMs: number[] }> {
  const results: SampleResult[] = [];
  for (const turn of work.turns) {
    const tokens = await renderer.tokenize(turnText(turn));
    results.push({ tokens, logprobs: new Float32Array(tokens.length).fill(-0.5), stop: 'stop', promptCacheHitTokens: 0 });
  }
  let next = 0;
  let before = process.threadCpuUsage();
  const cpuMs: number[] = [];
  const sample = async () => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    cpuMs.push((user + system) / 1000);
    return results[next++] as SampleResult;
  };
  return { version: 'bench', sample, cpuMs };
}
