/** What Python's `str.strip()` and `str.split()` take for white space; JavaScript's own set is another. */
const SPACES = '\\t\\n\\v\\f\\r\\x1c-\\x1f \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const LINE_ENDS = '\\n\\v\\f\\r\\x1c-\\x1e\\x85\\u2028\\u2029';
const LEADING = new RegExp(`^[${SPACES}]+`);
const SPACE = new RegExp(`[${SPACES}]`);
/** Where `str.splitlines` splits. */
export const LINE_END = new RegExp(`\\r\\n|[${LINE_ENDS}]`);
const WORD = new RegExp(`[^${SPACES}]+`, 'g');

/** `text.strip(characters)`; null takes white space away. `ends` says where. */
export function strip(text: string, characters: string | null, ends: 'both' | 'left' | 'right' = 'both'): string {
  const isStripped = characters === null ? (unit: string) => SPACE.test(unit) : (unit: string) => characters.includes(unit);
  const points = characters === null || !/[\ud800-\udfff]/.test(characters) ? text : Array.from(text);
  let start = 0;
  let end = points.length;
  if (ends !== 'right') while (start < end && isStripped(points[start] as string)) start++;
  if (ends !== 'left') while (end > start && isStripped(points[end - 1] as string)) end--;
  return typeof points === 'string' ? points.slice(start, end) : points.slice(start, end).join('');
}

/** `text.split()` without a separator: words, and what is left after `limit` of them. */
export function words(text: string, limit: number): string[] {
  if (limit < 0) return text.match(WORD) ?? [];
  const found: string[] = [];
  let rest = text.replace(LEADING, '');
  while (rest !== '' && found.length < limit) {
    const at = rest.search(SPACE);
    if (at < 0) break;
    found.push(rest.slice(0, at));
    rest = rest.slice(at).replace(LEADING, '');
  }
  return rest === '' ? found : [...found, rest];
}
