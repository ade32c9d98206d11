import type { Decoder } from './file.ts';

/** The bytes of a token by its text in the file, the same that the library's decoder makes of it. `isAdded`: it is one of `added_tokens`. */
export type BytesOfToken = (token: string, isAdded: boolean) => Uint8Array;

const encoder = new TextEncoder();

/**
 * How a vocabulary writes bytes: every byte as a character of its own (byte-level), or UTF-8 text with a sign for the space and `<0x0A>` for
 * single bytes (after SentencePiece). Refuses any other, because what a token stands for could not be told.
 */
export function byteReader(file: string, decoders: readonly Decoder[]): BytesOfToken {
  const types = decoders.map(({ type }) => type);
  if (types.includes('ByteLevel')) return (token, isAdded) => (isAdded ? encoder.encode(token) : byteLevel(token));
  const space = decoders.map(spaceSign).find((sign) => sign !== undefined);
  // Runs of spaces are among the added tokens of Gemma, with the sign: these are read as the others are.
  if (space !== undefined) return (token) => pieceBytes(token, space, types.includes('ByteFallback'));
  throw new Error(`${file}: decoder is of type ${types.join(', ')}; known are ByteLevel, Metaspace, and Replace of a sign by a space`);
}

function spaceSign({ type, pattern, content, ...more }: Decoder): string | undefined {
  if (type === 'Metaspace') return typeof more.replacement === 'string' ? more.replacement : '\u2581';
  return type === 'Replace' && content === ' ' ? pattern?.String : undefined;
}

function pieceBytes(token: string, space: string, hasByteTokens: boolean): Uint8Array {
  const byte = hasByteTokens ? /^<0x([0-9A-F]{2})>$/.exec(token)?.[1] : undefined;
  return byte === undefined ? encoder.encode(token.replaceAll(space, ' ')) : Uint8Array.of(Number.parseInt(byte, 16));
}

/** A token with a character outside the alphabet is its own text, as in the library's decoder. */
function byteLevel(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let at = 0; at < token.length; at++) {
    const byte = BYTE_OF_UNIT.get(token.charCodeAt(at));
    if (byte === undefined) return encoder.encode(token);
    bytes[at] = byte;
  }
  return bytes;
}

/** GPT-2's alphabet: printable characters of Latin-1 stand for their own byte, the other bytes for characters from U+0100 on, in their order. */
const BYTE_OF_UNIT: ReadonlyMap<number, number> = alphabet();

function alphabet(): Map<number, number> {
  const units = new Map<number, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const isPrintable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    units.set(isPrintable ? byte : next++, byte);
  }
  return units;
}
