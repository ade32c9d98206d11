import { GatewayError } from './errors.ts';
import type { ChatMessage } from './renderer.ts';
import type { TokenLine } from './token-line.ts';

/** What a message takes besides its text: its place in the tree, roughly. */
const MESSAGE_BYTES = 400;
/** As engines keep text that is not Latin. */
const CHARACTER_BYTES = 2;

/**
 * How much a trial holds of its conversations: each message once in its context, and the ids of each fragment. An agent that sends ever new
 * histories would fill its worker's memory at the price of the calls; this is what stops it.
 */
export class HistoryLimit {
  readonly #maxBytes: number;
  readonly #lines = new WeakSet<ArrayBufferLike>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** To be asked before new messages are kept. @throws GatewayError when there is no room for them */
  readonly take = (messages: readonly ChatMessage[]): void => {
    const bytes = messages.reduce((sum, message) => sum + bytesOf(message), 0);
    if (this.#bytes + bytes > this.#maxBytes)
      throw new GatewayError(
        'history_limit_reached',
        `This trial may hold ${Math.round(this.#maxBytes / 1024 ** 2)} MiB of conversations, and this request does not fit. Stop the agent.`,
      );
    this.#bytes += bytes;
  };

  /** Ids that are held anyway are counted after the fact: their memory is known only then, and bounded by the context. */
  noteIds({ ids: { buffer } }: TokenLine): void {
    if (this.#lines.has(buffer)) return;
    this.#lines.add(buffer);
    this.#bytes += buffer.byteLength;
  }
}

function bytesOf({ content, reasoning = '', toolCalls = [], toolCallId = '' }: ChatMessage): number {
  const calls = toolCalls.flatMap(({ id, name, arguments: json }) => [id, name, json]);
  const characters = [content, reasoning, toolCallId, ...calls].reduce((sum, { length }) => sum + length, 0);
  return MESSAGE_BYTES + CHARACTER_BYTES * characters;
}
