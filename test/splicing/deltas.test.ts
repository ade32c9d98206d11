import { describe, expect, it } from 'vitest';
import { ConversationTree } from '../../services/gateway/conversation.ts';
import type { ChatMessage } from '../../services/gateway/renderer.ts';
import { FETCH_LIMIT_MS } from '../support/tokenizers.ts';
import { TOOLS } from './agent.ts';
import { ACCENTS } from './model-speech.ts';
import { realModel } from './real-model.ts';

const tools = TOOLS.map((tool) => ({ json: JSON.stringify(tool) }));
const SPEECH = { reasoning: '', text: 'Hello.', calls: [] };
const CALL = { reasoning: '', text: '', calls: [{ name: 'bash', arguments: { cmd: 'ls', n: 2 } }] };

/** The texts that follow sampled ids: after a turn and a user's message, after one that was cut, after a call and its result. */
const DELTAS = {
  qwen3coder: {
    closed: '\n<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n',
    cut: '<|im_end|>\n<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n',
    called: '\n<|im_start|>user\n<tool_response>\nr1\n</tool_response>\n<|im_end|>\n<|im_start|>assistant\n',
  },
  llama31: {
    closed: '<|start_header_id|>user<|end_header_id|>\n\nu1<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    cut: '<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nu1<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    called: '<|start_header_id|>ipython<|end_header_id|>\n\n"r1"<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
  },
  deepseek_v31: {
    closed: '<｜User｜>u1<｜Assistant｜></think>',
    cut: '<｜end▁of▁sentence｜><｜User｜>u1<｜Assistant｜></think>',
    called: '<｜tool▁output▁begin｜>r1<｜tool▁output▁end｜>',
  },
  gptoss: {
    closed: '<|start|>user<|message|>u1<|end|><|start|>assistant',
    cut: '<|end|><|start|>user<|message|>u1<|end|><|start|>assistant',
    called: '<|start|>functions.bash to=assistant<|channel|>commentary<|message|>"r1"<|end|><|start|>assistant',
  },
  gemma3: {
    closed: '\n<start_of_turn>user\nu1<end_of_turn>\n<start_of_turn>model\n',
    cut: '<end_of_turn>\n<start_of_turn>user\nu1<end_of_turn>\n<start_of_turn>model\n',
    called: null,
  },
} as const;

describe.each(Object.keys(DELTAS) as (keyof typeof DELTAS)[])('%s', (family) => {
  it(
    'puts behind sampled ids what its template writes there, and nothing else',
    async () => {
      const model = await realModel(family);
      const { renderer, tokenizer } = model;
      const accent = ACCENTS[family];
      const deltaAfter = async (sampled: string, next: ChatMessage) => {
        const tree = new ConversationTree(renderer);
        const start: ChatMessage[] = [{ role: 'user', content: 'u0' }];
        const offered = renderer.noTools === null ? tools : [];
        const placed = await tree.prompt(start, offered);
        const ids = await tokenizer.encode(sampled);
        const said = await renderer.parse(ids, { prompt: placed.prompt, tools: offered });
        tree.record(placed, 0, ids, said);
        const { prompt } = await tree.prompt(
          [...start, { role: 'assistant', ...said }, { ...next, toolCallId: said.toolCalls?.[0]?.id ?? '' }],
          offered,
        );
        expect([...prompt.subarray(0, placed.prompt.length + ids.length)]).toEqual([...placed.prompt, ...ids]);
        return tokenizer.decode(prompt.subarray(placed.prompt.length + ids.length));
      };
      const { closed, cut, called } = DELTAS[family];
      const user: ChatMessage = { role: 'user', content: 'u1' };
      const written = accent.write(SPEECH, false);
      expect(await deltaAfter(written + accent.close(SPEECH), user)).toBe(closed);
      expect(await deltaAfter(written, user)).toBe(cut);
      if (called !== null)
        expect(await deltaAfter(accent.write(CALL, false) + accent.close(CALL), { role: 'tool', content: 'r1' })).toBe(called);
    },
    FETCH_LIMIT_MS,
  );
});

it(
  'a template that moves the system prompt to the newest message opens a fragment each time that it does',
  async () => {
    const { renderer, tokenizer } = await realModel('mistral_nemo');
    const tree = new ConversationTree(renderer);
    let messages: ChatMessage[] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'u0' },
    ];
    const causes: (string | null)[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const placed = await tree.prompt(messages, []);
      const ids = await tokenizer.encode(`a${turn}</s>`);
      const said = await renderer.parse(ids, { prompt: placed.prompt, tools: [] });
      causes.push(tree.record(placed, turn, ids, said).cause);
      expect(await tokenizer.decode(placed.prompt)).toMatch(new RegExp(`\\[INST\\]Be brief\\.\\n\\nu${turn}\\[/INST\\]$`));
      messages = [...messages, { role: 'assistant', ...said }, { role: 'user', content: `u${turn + 1}` }];
    }
    expect(causes).toEqual(['first', 'template_rewrites', 'template_rewrites']);
  },
  FETCH_LIMIT_MS,
);
