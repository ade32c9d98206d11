import type { CallText, Family, Piece, TurnReading, TurnText } from './family.ts';
import { jsonArguments } from './json-call.ts';
import { raw } from './pieces.ts';

const START = '<|start|>';
const MESSAGE = '<|message|>';
const END = '<|end|>';
const CALL = '<|call|>';

/** One message of a turn: what stands before `<|message|>` and after it. */
type Message = { readonly header: string; readonly body: string; readonly pieces: readonly Piece[] };

/**
 * gpt-oss: a turn is several messages, each in a channel. `<|end|>` ends a message, only `<|return|>` and `<|call|>` end the turn.
 * Analysis is reasoning, final and commentary are content, commentary to `functions.<name>` is the call.
 */
export const HARMONY: Family = {
  name: 'harmony',
  stops: ['<|return|>', CALL, '<|endoftext|>'],
  closes: [END],
  endsWithNextHeader: false,
  markers: [START, MESSAGE, END, '<|channel|>', '<|constrain|>'],
  reasoning: null,
  read: readHarmony,
  callIds: 'own',
  noTools: null,
};

function readHarmony({ pieces, closedBy, tools }: TurnText): TurnReading {
  const messages = split(pieces);
  const isAnalysis = ({ header }: Message) => channelOf(header) === 'analysis' && recipientOf(header) === null;
  const reasoning = messages.filter(isAnalysis).map(({ body }) => body.trim());
  const said = messages.filter((message) => !isAnalysis(message));
  const called = said.filter(({ header }) => recipientOf(header) !== null);
  const plain = { content: said.map(plainText).join('\n'), reasoning: reasoning.join('\n'), calls: [] };
  if (called.length === 0 || tools.size === 0 || closedBy !== CALL) return plain;
  const calls = called.map(callIn);
  if (!calls.every((call) => call !== null)) return { ...plain, calls: null };
  const words = said.filter((message) => !called.includes(message)).map(({ body }) => body);
  return { ...plain, content: words.join('\n'), calls };
}

function callIn({ header, body }: Message): CallText | null {
  const recipient = recipientOf(header);
  const name = recipient?.startsWith('functions.') ? recipient.slice('functions.'.length) : null;
  const json = jsonArguments(body);
  return name && json !== null ? { name, arguments: json } : null;
}

function plainText({ header, body, pieces }: Message): string {
  return recipientOf(header) === null ? body : raw(pieces);
}

/** The recipient may stand before or after the channel. */
function recipientOf(header: string): string | null {
  const recipient = /\bto=([\w.-]+)/.exec(header)?.[1];
  return recipient ?? null;
}

function channelOf(header: string): string {
  return /<\|channel\|>\s*(\w+)/.exec(header)?.[1] ?? '';
}

function split(pieces: readonly Piece[]): Message[] {
  const messages: Message[] = [];
  let current: Piece[] = [];
  for (const piece of pieces) {
    const ends = piece.marker && (piece.text === END || piece.text === START);
    if (!ends) current.push(piece);
    else if (current.length > 0) {
      if (piece.text === END || current.some(({ text, marker }) => marker && text === MESSAGE)) messages.push(messageOf(current));
      current = [];
    }
  }
  if (current.length > 0) messages.push(messageOf(current));
  return messages;
}

function messageOf(pieces: readonly Piece[]): Message {
  const at = pieces.findIndex(({ text, marker }) => marker && text === MESSAGE);
  if (at === -1) return { header: '', body: raw(pieces), pieces };
  return { header: raw(pieces.slice(0, at)), body: raw(pieces.slice(at + 1)), pieces };
}
