import { expect, test } from 'vitest';
import { type TerminusAgentOptions, terminusAgent } from './terminus-agent.ts';

const OPTIONS: TerminusAgentOptions = {
  apiBase: 'http://127.0.0.1:1/t/a/v1',
  model: 'Qwen/Qwen3-8B',
  maxTurns: 50,
  temperature: 1,
  maxTokens: 2048,
  contextLimitTokens: 32_768,
  compaction: false,
  collectRolloutDetails: false,
};
const nameOf = (over: Partial<TerminusAgentOptions>) => terminusAgent({ ...OPTIONS, ...over }).model_name;

test('the configuration has no key but its placeholder', () => {
  expect(terminusAgent(OPTIONS)).toMatchObject({
    name: 'terminus-2',
    kwargs: { llm_kwargs: { api_key: expect.stringMatching(/^\$\{STILLROOM_GATEWAY_KEY\}$/) } },
  });
});

test.each([
  ['Qwen/Qwen3-8B', 'hosted_vllm/Qwen-Qwen3-8B.32768.2048'],
  ['a b/ü:1', 'hosted_vllm/a-b---1.32768.2048'],
])('a model named %s has a name that harbor takes, and its limits in it', (model, name) => {
  expect(nameOf({ model })).toBe(name);
});

test('a long name is cut, but not its limits', () => {
  const name = nameOf({ model: `lab/${'x'.repeat(100)}` });
  expect(name).toMatch(/^hosted_vllm\/lab-x+\.32768\.2048$/);
  expect(name).toHaveLength('hosted_vllm/'.length + 64);
});

test('small contexts are compacted later', () => {
  const freeTokens = (contextLimitTokens: number) =>
    terminusAgent({ ...OPTIONS, contextLimitTokens, compaction: true }).kwargs?.proactive_summarization_threshold;
  expect([freeTokens(32_768), freeTokens(12_000)]).toEqual([8000, 3000]);
});
