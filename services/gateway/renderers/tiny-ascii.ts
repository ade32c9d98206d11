import type { ChatMessage, ChatRenderer, ExtendRequest, Extension } from '../renderer.ts';
import { fingerprintOf } from './fingerprint.ts';

const VOCABULARY_SIZE = 128;
const NEWLINE = 10;
const FIRST_PRINTABLE = 32;
const DELETE = 127;
const UNREADABLE = 63; // '?'

/** The generation prompt: an assistant turn is a command after a shell prompt. */
const PROMPT_SIGN = '$ ';

/**
 * Template of the tiny model. Ids are ASCII codes; every message is its text and a newline, an assistant's has the prompt sign before it.
 * The newline is also the stop token, so a closed turn needs nothing between its ids and the next message.
 */
export function tinyAsciiRenderer(): ChatRenderer {
  const renderer = {
    name: 'stillroom_tiny',
    tokenizer: 'stillroom-tiny-ascii',
    stopTokens: [NEWLINE],
    noTools: 'its conversations are commands and what they print',
    vocabulary: { size: VOCABULARY_SIZE, idToString: (id: number) => String.fromCharCode(id), bytesOf: (id: number) => Uint8Array.of(id) },
    tokenize,
    render(messages: readonly ChatMessage[], { addGenerationPrompt }: { readonly addGenerationPrompt: boolean }) {
      return tokenize(messages.map(messageText).join('') + (addGenerationPrompt ? PROMPT_SIGN : ''));
    },
    extend({ messages, producedIndex, closed }: ExtendRequest): Extension {
      const added = messages.slice(producedIndex + 1);
      return { delta: tokenize((closed ? '' : '\n') + added.map(messageText).join('') + PROMPT_SIGN) };
    },
    parse(sampled: Int32Array) {
      const end = sampled.at(-1) === NEWLINE ? sampled.length - 1 : sampled.length;
      return { content: Buffer.from(sampled.subarray(0, end)).toString('latin1') };
    },
  };
  return { ...renderer, fingerprint: () => fingerprintOf(renderer) };
}

function messageText({ role, content }: ChatMessage): string {
  return `${role === 'assistant' ? PROMPT_SIGN : ''}${content}\n`;
}

/** One id per character (code point); control and non-ASCII characters become `?`, newlines stay. */
function tokenize(text: string): Int32Array {
  return Int32Array.from(text, (character) => {
    const code = character.codePointAt(0) ?? UNREADABLE;
    return code === NEWLINE || (code >= FIRST_PRINTABLE && code < DELETE) ? code : UNREADABLE;
  });
}
