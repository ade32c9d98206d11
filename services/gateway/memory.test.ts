import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { TrialId } from '../../core/ids.ts';
import { ConversationTree } from './conversation.ts';
import type { ChatMessage } from './renderer.ts';
import { tinyAsciiRenderer } from './renderers/tiny-ascii.ts';
import { TrialSession } from './session.ts';
import { compileChatTemplate } from './template/chat-template.ts';
import type { TemplateInput } from './template/template.ts';
import { byteRenderer } from './testing/byte-renderer.ts';
import { assistant, failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { says, scriptedSampler } from './testing/scripted-sampler.ts';
import { parseChatRequest } from './wire.ts';

const { open, post } = gatewayFixture();
const MIB = 1024 ** 2;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes that are held now, in V8's heap and in arrays outside of it. */
function heldBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** An open trial after 200 turns, its last prompt of about 64,000 ids; requests come as JSON, so that no text is shared with ours. */
async function longTrial(number: number): Promise<TrialSession> {
  const answer = 'a'.repeat(99);
  const session = new TrialSession({
    trialId: `long-${number}` as TrialId,
    modelName: 'tiny',
    sampler: scriptedSampler(says(`${answer}\n`)),
    renderer: tinyAsciiRenderer(),
    contextLimitTokens: 131_072,
    maxTokensPerCall: 200,
    temperature: 1,
  });
  const messages: ChatMessage[] = [{ role: 'user', content: 'go' }];
  for (let turn = 0; turn < 200; turn++) {
    const { prompt } = await session.complete(parseChatRequest(JSON.stringify({ messages })), new AbortController().signal);
    expect(prompt.json.length).toBeGreaterThan(prompt.length); // as an agent is told them
    messages.push({ role: 'assistant', content: answer }, { role: 'user', content: `${turn} `.padEnd(217, 'o') });
  }
  return session;
}

it('an open trial of 200 turns and 64,000 ids holds less than 3 MiB; a copy of each prompt would be 25', async () => {
  await longTrial(0);
  const before = heldBytes();
  const trials = [await longTrial(1), await longTrial(2), await longTrial(3)];
  const perTrialMib = (heldBytes() - before) / trials.length / MIB;
  const prompts = trials[0]?.record().spans.map(({ prompt }) => prompt) ?? [];
  expect(prompts.at(-1)?.length).toBeGreaterThan(63_000);
  expect(prompts.reduce((sum, { byteLength }) => sum + byteLength, 0) / MIB).toBeGreaterThan(24);
  expect(perTrialMib).toBeLessThan(3);
});

describe('a trial that sends ever new histories', () => {
  const other = (index: number) => ({ messages: [user(`${index}`.padEnd(40, 'x'))] });

  it('is refused when they take what it may hold, before anything is sampled', async () => {
    const sampler = scriptedSampler(says('ls\n'));
    await using session = open(sampler, { maxHistoryBytes: 12_000 });
    const codes: (string | undefined)[] = [];
    for (let index = 0; index < 5; index++) codes.push((await failure(await post(session, other(index)))).code);
    expect(codes).toEqual([undefined, undefined, undefined, 'history_limit_reached', 'history_limit_reached']);
    expect(sampler.requests).toHaveLength(3);
    expect(session.record()).toMatchObject({ calls: 3, failure: null });
  });

  it('is refused as well when it never gets an answer', async () => {
    await using session = open(scriptedSampler(new Error('down')), { maxHistoryBytes: 2_000 });
    const statuses: number[] = [];
    for (let index = 0; index < 6; index++) statuses.push((await post(session, other(index))).status);
    expect(statuses).toEqual([502, 502, 502, 502, 400, 400]);
  });

  it('is refused by what its messages take, whatever part of them is large', async () => {
    const renderer = byteRenderer();
    const id = 'i'.repeat(1_000);
    const call = { id, type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages = [user('go'), { role: 'assistant', content: '', tool_calls: [call] }, { role: 'tool', content: '', tool_call_id: id }];
    await using session = open(scriptedSampler(says('ls\n')), { renderer, maxHistoryBytes: 5_000, contextLimitTokens: 1000 });
    expect(await failure(await post(session, { messages }))).toMatchObject({ code: 'history_limit_reached' });
  });

  it('that go on as they were take nothing again', async () => {
    await using session = open(scriptedSampler(says('ls\n')), { maxHistoryBytes: 7_000, contextLimitTokens: 1000 });
    const messages = [user('go')];
    for (let turn = 0; turn < 4; turn++) {
      expect((await post(session, { messages })).status).toBe(200);
      messages.push(assistant('ls'), user(`${turn}`));
    }
  });
});

describe('what was read once and may be needed again', () => {
  const template = compileChatTemplate('', { nowMs: 0 });
  const render = (input: Partial<TemplateInput>) => template.render({ messages: [], tools: [], addGenerationPrompt: true, ...input });

  it('is little, though arguments may be ever new and take much more memory than their text', () => {
    const numbers = '1,'.repeat(7_000);
    const before = heldBytes();
    for (let index = 0; index < 400; index++)
      render({
        messages: [{ role: 'assistant', content: '', toolCalls: [{ id: '', name: 'f', arguments: `{"a": [${numbers}${index}]}` }] }],
      });
    expect((heldBytes() - before) / MIB).toBeLessThan(60);
  });

  it('does not hold the request that it was a part of', () => {
    const before = heldBytes();
    for (let index = 0; index < 12; index++) {
      const body = JSON.stringify([{ name: `a tool of some length ${index}` }, ' '.repeat(4 * MIB)]);
      render({ tools: [{ json: body.slice(1, body.indexOf('}') + 1) }] });
    }
    expect((heldBytes() - before) / MIB).toBeLessThan(10);
  });

  it('is not the tools of every call of a trial', async () => {
    const tree = new ConversationTree(byteRenderer());
    const toolsOf = (index: number) => [{ json: `{"${index}": "${'x'.repeat(2 * MIB)}"}` }];
    const before = heldBytes();
    for (let index = 0; index < 12; index++) await tree.prompt([{ role: 'user', content: 'go' }], toolsOf(index));
    await new Promise(setImmediate); // what awaits hold is let go
    expect((heldBytes() - before) / MIB).toBeLessThan(12);
    expect(tree).toBeDefined();
  });
});
