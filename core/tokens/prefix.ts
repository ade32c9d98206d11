/** How many tokens from the start of `part` stand in `tokens` from `offset` on, one by one. A view of the same memory is not compared. */
export function commonLength(tokens: Int32Array, offset: number, part: Int32Array): number {
  const longest = Math.max(0, Math.min(part.length, tokens.length - offset));
  if (part.buffer === tokens.buffer && part.byteOffset === tokens.byteOffset + offset * tokens.BYTES_PER_ELEMENT) return longest;
  for (let i = 0; i < longest; i++) if (tokens[offset + i] !== part[i]) return i;
  return longest;
}
