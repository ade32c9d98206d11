import { escaped } from '../../services/gateway/families/pieces.ts';
import type { Tokenizer } from '../../services/gateway/tokenizer/tokenizer.ts';

export type SpokenCall = { readonly name: string; readonly arguments: Readonly<Record<string, string | number | boolean>> };
export type Speech = { readonly reasoning: string; readonly text: string; readonly calls: readonly SpokenCall[] };

/** How a family's model writes a turn, without the token that ends it, and that token. */
export type Accent = {
  readonly write: (speech: Speech, reasoningIsOpen: boolean) => string;
  readonly close: (speech: Speech) => string;
  readonly mostCalls: number;
  readonly reasons: boolean;
};

const json = (value: unknown) => JSON.stringify(value);
const think = ({ reasoning, text }: Speech, open: boolean) =>
  reasoning === '' ? (open ? `\n</think>\n\n${text}` : text) : `${open ? '' : '<think>\n'}${reasoning}\n</think>\n\n${text}`;
const imEnd = () => '<|im_end|>';
const deepSeekEnd = () => '<｜end▁of▁sentence｜>';

const hermes: Accent = {
  write: (speech, open) =>
    [
      think(speech, open),
      ...speech.calls.map((call) => `<tool_call>\n{"name": ${json(call.name)}, "arguments": ${json(call.arguments)}}\n</tool_call>`),
    ]
      .filter((part) => part !== '')
      .join('\n'),
  close: imEnd,
  mostCalls: 3,
  reasons: true,
};

const functionTags: Accent = {
  write: (speech, open) =>
    think(speech, open) +
    speech.calls
      .map(({ name, arguments: given }) => {
        const parameters = Object.entries(given).map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`);
        return `\n<tool_call>\n<function=${name}>\n${parameters.join('')}</function>\n</tool_call>`;
      })
      .join(''),
  close: imEnd,
  mostCalls: 3,
  reasons: true,
};

const llama: Accent = {
  write: ({ text, calls: [call] }) => (call ? json({ name: call.name, parameters: call.arguments }) : text),
  close: () => '<|eot_id|>',
  mostCalls: 1,
  reasons: false,
};

const deepSeek = (call: (call: SpokenCall) => string, joined: string): Accent => ({
  write: ({ text, calls }) =>
    calls.length === 0
      ? text
      : `${text}<｜tool▁calls▁begin｜>${calls.map((one) => `<｜tool▁call▁begin｜>${call(one)}<｜tool▁call▁end｜>`).join(joined)}<｜tool▁calls▁end｜>`,
  close: deepSeekEnd,
  mostCalls: 2,
  reasons: false,
});

const harmony: Accent = {
  write: ({ reasoning, text, calls: [call] }) => {
    const thought = reasoning === '' ? '' : `<|channel|>analysis<|message|>${reasoning}<|end|><|start|>assistant`;
    return call
      ? `${thought} to=functions.${call.name}<|channel|>commentary <|constrain|>json<|message|>${json(call.arguments)}`
      : `${thought}<|channel|>final<|message|>${text}`;
  },
  close: ({ calls }) => (calls.length > 0 ? '<|call|>' : '<|return|>'),
  mostCalls: 1,
  reasons: true,
};

const plain = (end: string): Accent => ({ write: ({ text }) => text, close: () => end, mostCalls: 0, reasons: false });

export const ACCENTS = {
  qwen3: hermes,
  qwen3coder: { ...functionTags, reasons: false },
  qwen35: functionTags,
  llama31: llama,
  deepseek_v3: deepSeek((call) => `function<｜tool▁sep｜>${call.name}\n\`\`\`json\n${json(call.arguments)}\n\`\`\``, '\n'),
  deepseek_v31: deepSeek((call) => `${call.name}<｜tool▁sep｜>${json(call.arguments)}`, ''),
  gptoss: harmony,
  gemma3: plain('<end_of_turn>'),
  mistral_nemo: plain('</s>'),
} as const satisfies Readonly<Record<string, Accent>>;

/**
 * Ids as a model may sample them: ordinary text in pieces that the tokenizer would not choose, cut where `cutEvery` says.
 * Control tokens stay whole, apart from those in `asText`, which are spelled in ordinary pieces.
 */
export async function sampledIds(
  tokenizer: Tokenizer,
  text: string,
  { cutEvery, asText = [] }: { readonly cutEvery: number; readonly asText?: readonly string[] },
): Promise<Int32Array> {
  const ids: number[] = [];
  const control = tokenizer.addedTokens.map(({ content }) => content).filter((content) => content.trim().length > 2);
  for (const part of split(text, control, asText)) {
    const whole = control.includes(part) && !asText.includes(part);
    const pieces = whole || cutEvery === 0 ? [part] : inPieces(part, asText.includes(part) ? 2 : cutEvery);
    for (const piece of pieces) ids.push(...(await tokenizer.encode(piece)));
  }
  return Int32Array.from(ids);
}

function split(text: string, control: readonly string[], asText: readonly string[]): string[] {
  const found = [...control, ...asText].filter((token) => text.includes(token)).sort((one, other) => other.length - one.length);
  if (found.length === 0) return text === '' ? [] : [text];
  const pattern = new RegExp(`(${found.map(escaped).join('|')})`);
  return text.split(pattern).filter((part) => part !== '');
}

function inPieces(text: string, every: number): string[] {
  const characters = [...text];
  const pieces: string[] = [];
  for (let at = 0; at < characters.length; at += every) pieces.push(characters.slice(at, at + every).join(''));
  return pieces;
}
