/** Whether a text is what the pattern says; `*` stands for any characters, none among them. Looks at the text once, from the front. */
export function fitsPattern(pattern: string, text: string): boolean {
  const [start = '', ...pieces] = pattern.split('*');
  const end = pieces.pop();
  if (end === undefined) return text === start;
  const endsAt = text.length - end.length;
  if (start.length > endsAt || !text.startsWith(start) || !text.endsWith(end)) return false;
  let at = start.length;
  // The first place of each piece leaves the most for those after it, so no other need be tried.
  for (const piece of pieces) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > endsAt) return false;
    at = found + piece.length;
  }
  return true;
}
