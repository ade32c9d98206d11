import type { AddedToken, Tokenizer } from '../tokenizer/tokenizer.ts';

const BYTES = 256;

/** One id per UTF-8 byte, and one for each of `tokens`: enough to tell tokens from their text in ordinary pieces. */
export function byteTokenizer(tokens: readonly string[], over: Partial<AddedToken> = {}): Tokenizer {
  const addedTokens = tokens.map((content, index) => ({
    id: BYTES + index,
    content,
    special: true,
    lstrip: false,
    rstrip: false,
    normalized: false,
    ...over,
  }));
  const longestFirst = addedTokens.toSorted((one, other) => other.content.length - one.content.length);
  const bytesOf = (id: number) => Buffer.from(id < BYTES ? [id] : (addedTokens[id - BYTES]?.content ?? ''));
  return {
    name: 'bytes',
    size: BYTES + tokens.length,
    addedTokens,
    async encode(text) {
      const ids: number[] = [];
      for (let rest = text; rest !== ''; ) {
        const token = longestFirst.find(({ content }) => rest.startsWith(content));
        const taken = token?.content ?? String.fromCodePoint(rest.codePointAt(0) ?? 0);
        ids.push(...(token ? [token.id] : Buffer.from(taken)));
        rest = rest.slice(taken.length);
      }
      return Int32Array.from(ids);
    },
    decode: async (ids) => Buffer.concat(Array.from(ids, bytesOf)).toString('utf8'),
    tokenId: (content) => addedTokens.find((token) => token.content === content)?.id,
    bytesOf,
  };
}
