import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChatRenderer, SampleRequest, TokenSampler } from '../../services/gateway/index.ts';
import { chatRenderer } from '../../services/gateway/renderers/chat-renderer.ts';
import { loadChatTemplate } from '../../services/gateway/template/chat-template.ts';
import { loadTokenizer } from '../../services/gateway/tokenizer/native.ts';
import type { Tokenizer } from '../../services/gateway/tokenizer/tokenizer.ts';
import { FETCH_LIMIT_MS, testModel } from '../support/tokenizers.ts';
import { TerminusSetting, TMUX_IS_HERE, terminusTurn } from './terminus-setting.ts';

let terminus: TerminusSetting;
let tokenizer: Tokenizer;
let renderer: ChatRenderer;
beforeAll(async () => {
  const { folder } = await testModel('qwen3');
  tokenizer = await loadTokenizer(folder);
  renderer = await chatRenderer({ name: 'qwen3', tokenizer, template: await loadChatTemplate(folder, { nowMs: 0 }) });
  terminus = await TerminusSetting.make();
}, FETCH_LIMIT_MS);
afterAll(() => terminus?.[Symbol.asyncDispose]());

/** Says `texts` in turn, in ids that no tokenizer would choose: three characters at a time. */
async function spelling(
  texts: readonly string[],
): Promise<TokenSampler & { readonly said: Int32Array[]; readonly asked: SampleRequest[] }> {
  const spelled = await Promise.all(
    texts.map((text) => Promise.all((text.match(/<\/?think>|.{1,3}/gs) ?? []).map((part) => tokenizer.encode(part)))),
  );
  const end = tokenizer.tokenId('<|im_end|>') ?? -1;
  const said = spelled.map((parts) => Int32Array.from([...parts.flatMap((part) => [...part]), end]));
  const asked: SampleRequest[] = [];
  return {
    version: 'step-0001',
    said,
    asked,
    async sample(request) {
      const tokens = said[asked.push(request) - 1] ?? Int32Array.of(end);
      return { tokens, logprobs: Float32Array.from(tokens, (id) => -1 / (1 + id)), stop: 'stop', promptCacheHitTokens: 0 };
    },
  };
}

if (TMUX_IS_HERE)
  test.for([
    ['that says what to do', ''],
    ['that thinks before', '<think>\nThe file `sun` is to be copied: “cp” does it. 日本語 🌞\n</think>\n\n'],
  ] as const)('a model of real tokens %s solves a task in one fragment of exactly its ids', async ([, thought]) => {
    const answers = [['ls\n'], ['cp sun map\n'], [], []].map((keys) => thought + terminusTurn(keys, { done: keys.length === 0 }));
    const sampler = await spelling(answers);
    const { session, ...run } = await terminus.play({ sampler, renderer });
    expect(run).toMatchObject({ reward: 1, stopReason: 'submitted', exceptionType: null });
    const { spans, ...record } = session.record();
    expect(record).toMatchObject({ calls: 4, fragments: { first: 1 }, failure: null });
    expect(spans.map(({ sampled }) => sampled)).toEqual(sampler.said);
    expect(spans.map(({ prompt }) => prompt)).toEqual(sampler.asked.map(({ prompt }) => prompt));
    for (const [index, { prompt }] of spans.entries()) {
      const before = spans[index - 1];
      if (before === undefined) continue;
      const kept = [...before.prompt, ...before.sampled];
      expect([...prompt.subarray(0, kept.length)]).toEqual(kept);
      const added = await tokenizer.decode(prompt.subarray(kept.length));
      expect(added).toMatch(/^\n<\|im_start\|>user\n.*<\|im_end\|>\n<\|im_start\|>assistant\n$/s);
      expect(added).not.toContain('as seen'); // nothing that was sampled came back as text
    }
    const turns = spans.map(({ prompt, sampled, logprobs }, callIndex) => ({ callIndex, prompt, sampled, logprobs }));
    expect(run.rollout).toEqual({ turns, problem: null });
  });
else test('the tokens are a real model’s', () => expect(tokenizer.size).toBeGreaterThan(150_000));
