import { join } from 'node:path';
import { execa } from 'execa';
import { beforeAll, describe, expect, it } from 'vitest';
import { type GatewaySession, type SampleResult, SamplerBusy, SamplerUnpaid } from '../../services/gateway/index.ts';
import { byteIds, byteRenderer } from '../../services/gateway/testing/byte-renderer.ts';
import { gatewayFixture, user } from '../../services/gateway/testing/gateway-fixture.ts';
import { scriptedSampler } from '../../services/gateway/testing/scripted-sampler.ts';
import { harborPython } from '../../services/harbor/python.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';

const { open } = gatewayFixture();

type Result = Record<string, unknown>;
type Via = 'hosted_vllm' | 'openai' | 'terminus' | 'sdk';
type Case = { readonly via: Via; readonly session: GatewaySession; readonly key?: string; readonly request?: object };

/** Runs all cases in one process: the libraries take seconds to load. */
async function ask(cases: readonly Case[]): Promise<Result[]> {
  const input = cases.map(({ via, session, key, request = {} }) => ({
    via,
    api_base: session.apiBase,
    api_key: key ?? session.apiKey,
    request: { messages: [user('go')], ...request },
  }));
  const python = await harborPython(PROJECT_ROOT);
  const { stdout } = await execa(python, [join(import.meta.dirname, 'clients.py')], { input: JSON.stringify(input) });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Result[];
}

const sampled = (text: string): SampleResult => {
  const tokens = byteIds(text);
  const logprobs = new Float32Array(tokens.length).fill(-0.5);
  return { tokens, logprobs, stop: text.endsWith('\n') ? 'stop' : 'length', promptCacheHitTokens: 0 };
};
const TURN = '<think>hm</think>so:!bash {"cmd":"ls"};\n';
/** The tools are rendered before it. */
const PROMPT = 'user: go\n> ';
const trial = (...script: Parameters<typeof scriptedSampler>) =>
  open(scriptedSampler(...script), { renderer: byteRenderer(), contextLimitTokens: 240, maxTokensPerCall: 64 });
const busyOnce = () => trial(new SamplerBusy('full', 50), sampled('ok\n'));

const tools = [{ type: 'function', function: { name: 'bash', parameters: { type: 'object', properties: { cmd: { type: 'string' } } } } }];
const toolCalls = [{ id: 'call-0', name: 'bash', arguments: '{"cmd":"ls"}' }];
const said = { content: 'so:', reasoning: 'hm', tool_calls: toolCalls, finish_reason: 'tool_calls' };
const long = { messages: [user('x'.repeat(250))] };
const exact = { logprobs: true, extra_body: { return_token_ids: true } };
const usage = { stream_options: { include_usage: true } };
const ids = { token_ids: [...byteIds(TURN)], prompt_token_ids: expect.arrayContaining([...byteIds(PROMPT)]) };

const error = (name: string, status: number | null) => ({ error: name, status });

/** A name, the case (made when the gateway runs), and what the client gives its agent. */
const ROWS: [string, () => Case, Result][] = [
  [
    'LiteLLM: calls and ids',
    () => ({ via: 'hosted_vllm', session: trial(sampled(TURN)), request: { tools, ...exact } }),
    { ...said, ...ids },
  ],
  [
    'LiteLLM over the OpenAI client: the same',
    () => ({ via: 'openai', session: trial(sampled(TURN)), request: { tools, ...exact } }),
    { ...said, ...ids },
  ],
  [
    'LiteLLM, streaming',
    () => ({ via: 'hosted_vllm', session: trial(sampled(TURN)), request: { tools, stream: true, ...usage } }),
    { ...said, usage: [expect.any(Number), byteIds(TURN).length] },
  ],
  ['the official client', () => ({ via: 'sdk', session: trial(sampled(TURN)), request: { tools } }), said],
  ['the official client, streaming', () => ({ via: 'sdk', session: trial(sampled(TURN)), request: { tools, stream: true } }), said],
  [
    'terminus-2: text, ids and log-probabilities',
    () => ({ via: 'terminus', session: trial(sampled('ls\n')) }),
    { content: 'ls', prompt_token_ids: [...byteIds(PROMPT)], token_ids: [...byteIds('ls\n')], logprobs: [-0.5, -0.5, -0.5] },
  ],
  ['terminus-2: a full context', () => ({ via: 'terminus', session: trial(), request: long }), error('ContextLengthExceededError', null)],
  [
    'terminus-2: an answer cut by max_tokens',
    () => ({ via: 'terminus', session: trial(sampled('ls')) }),
    error('OutputLengthExceededError', null),
  ],
  ...(['hosted_vllm', 'openai'] as const).flatMap((via): typeof ROWS => [
    [`LiteLLM (${via}): a full context`, () => ({ via, session: trial(), request: long }), error('ContextWindowExceededError', 400)],
    [
      `LiteLLM (${via}): a full context in a stream`,
      () => ({ via, session: trial(), request: { ...long, stream: true } }),
      error('ContextWindowExceededError', 400),
    ],
    [`LiteLLM (${via}): a busy model`, () => ({ via, session: busyOnce() }), error('RateLimitError', 429)],
    [`LiteLLM (${via}): a busy model, tried again`, () => ({ via, session: busyOnce(), request: { num_retries: 1 } }), { content: 'ok' }],
    [`LiteLLM (${via}): a wrong key`, () => ({ via, session: trial(), key: 'sr-wrong' }), error('AuthenticationError', 401)],
    [`LiteLLM (${via}): a broken model`, () => ({ via, session: trial(new Error('x')) }), error('BadGatewayError', 502)],
    [
      `LiteLLM (${via}): a request that cannot be honoured`,
      () => ({ via, session: trial(), request: { tools, tool_choice: 'required' } }),
      error('BadRequestError', 400),
    ],
    [
      `LiteLLM (${via}): a trial that cannot go on`,
      () => ({ via, session: trial(new SamplerUnpaid('x')) }),
      error(via === 'openai' ? 'APIError' : 'BadRequestError', 410),
    ],
  ]),
  ['the official client: a busy model, tried again by itself', () => ({ via: 'sdk', session: busyOnce() }), { content: 'ok' }],
];

describe('what agents get through', () => {
  let results: Result[] = [];
  beforeAll(async () => {
    results = await ask(ROWS.map(([, make]) => make()));
  });
  it.each(ROWS.map(([name, , expected], index) => [name, index, expected] as const))('%s', (_, index, expected) =>
    expect(results[index]).toMatchObject(expected),
  );
});
