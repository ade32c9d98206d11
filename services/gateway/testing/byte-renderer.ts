import type { ChatMessage, ChatRenderer, ExtendRequest, ParsedTurn, ToolDefinition } from '../renderer.ts';
import { fingerprintOf } from '../renderers/fingerprint.ts';

const STOP = 10;
/** Tokens of more than one byte: ids from 256 on. */
const WORDS = ['();', 'END', 'END.'];
const BYTES = 256;

/** Ids of a text, a byte each. */
export const byteIds = (text: string): Int32Array => Int32Array.from(Buffer.from(text));
/** The id of one of the words. */
export const wordId = (word: string): number => BYTES + WORDS.indexOf(word);

/**
 * A model whose ids are bytes, so that a character may be cut, and a few words. A turn is `<think>reasoning</think>`, text, and calls as
 * `!name arguments;`, each optional, and ends in a newline.
 */
export function byteRenderer(): ChatRenderer {
  const bytesOf = (id: number) => (id < BYTES ? Uint8Array.of(id) : Buffer.from(WORDS[id - BYTES] ?? ''));
  const renderer = {
    name: 'bytes',
    tokenizer: 'bytes',
    stopTokens: [STOP],
    noTools: null,
    vocabulary: { size: BYTES + WORDS.length, bytesOf, idToString: (id: number) => Buffer.from(bytesOf(id)).toString() },
    tokenize: (text: string) => (WORDS.includes(text) ? Int32Array.of(wordId(text)) : byteIds(text)),
    render(
      messages: readonly ChatMessage[],
      { tools, addGenerationPrompt }: { tools: readonly ToolDefinition[]; addGenerationPrompt: boolean },
    ) {
      const head = tools.map(({ json }) => `${json}\n`).join('');
      return byteIds(head + messages.map(messageText).join('') + (addGenerationPrompt ? '> ' : ''));
    },
    extend: ({ messages, producedIndex, closed }: ExtendRequest) => {
      const added = messages.slice(producedIndex + 1).map(messageText);
      return { delta: byteIds(`${closed ? '' : '\n'}${added.join('')}> `) };
    },
    parse: (sampled: Int32Array) => parsed(Buffer.concat(Array.from(sampled, bytesOf)).toString().replace(/\n$/, '')),
  };
  return { ...renderer, fingerprint: () => fingerprintOf(renderer) };
}

function messageText({ role, content, reasoning, toolCalls = [] }: ChatMessage): string {
  const calls = toolCalls.map(({ name, arguments: json }) => `!${name} ${json};`).join('');
  return `${role}: ${reasoning === undefined ? '' : `<think>${reasoning}</think>`}${content}${calls}\n`;
}

function parsed(text: string): ParsedTurn {
  const [, reasoning, rest = text] = /^<think>(.*?)(?:<\/think>(.*))?$/s.exec(text) ?? [];
  const said = reasoning !== undefined && !text.includes('</think>') ? '' : rest;
  const calls = [...said.matchAll(/!(\w+) (.*?);/g)].map(([, name = '', json = ''], index) => ({
    id: `call-${index}`,
    name,
    arguments: json,
  }));
  return {
    content: said.replaceAll(/!\w+ .*?;/g, ''),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(calls.length > 0 ? { toolCalls: calls } : {}),
  };
}
