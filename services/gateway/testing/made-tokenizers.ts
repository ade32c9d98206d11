/** Small tokenizer files for tests, in the two ways that vocabularies write bytes. */

/** Ids 0 to 255 are the bytes, 256 is "ab", 257 the added token <|end|>. */
export function byteLevelFile() {
  const vocab = Object.fromEntries(Array.from({ length: 256 }, (_, byte) => [unitOf(byte), byte]));
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  return file({
    vocab: { ...vocab, ab: 256 },
    merges: [['a', 'b']],
    byteFallback: false,
    added: [{ id: 257, content: '<|end|>' }],
    normalizer: null,
    pre_tokenizer: byteLevel,
    decoder: byteLevel,
  });
}

/** Spaces are written ▁; a character that is not in the vocabulary is its bytes. <▁> is an added token. */
export function pieceFile() {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  const pieces = [...bytes, '▁', 'a', '▁a', '<', '>'];
  return file({
    vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
    merges: [['▁', 'a']],
    byteFallback: true,
    added: [{ id: pieces.length, content: '<▁>' }],
    normalizer: { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
    pre_tokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }],
    },
  });
}

type Parts = {
  readonly vocab: Readonly<Record<string, number>>;
  readonly merges: readonly (readonly [string, string])[];
  readonly byteFallback: boolean;
  readonly added: readonly { readonly id: number; readonly content: string }[];
  readonly normalizer: object | null;
  readonly pre_tokenizer: object | null;
  readonly decoder: object;
};

function file({ vocab, merges, byteFallback, added, ...steps }: Parts) {
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added.map((token) => ({ ...token, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true })),
    post_processor: null,
    ...steps,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: byteFallback,
      ignore_merges: false,
      vocab,
      merges,
    },
  };
}

/** GPT-2's character for a byte, by its published rule. */
function unitOf(byte: number): string {
  const printable = [...'!"#$%&\'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~'];
  const isPrintable = (code: number) => printable.includes(String.fromCharCode(code)) || (code > 0xa0 && code < 0x100 && code !== 0xad);
  if (isPrintable(byte)) return String.fromCharCode(byte);
  return String.fromCharCode(0x100 + Array.from({ length: byte }, (_, code) => code).filter((code) => !isPrintable(code)).length);
}
