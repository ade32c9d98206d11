import type { Value } from './values.ts';

/** `str(value)` of Python, which is also what `{{ value }}` prints; an undefined value is the empty text. */
export function toText(value: Value): string {
  if (value.type === 'StringValue') return value.value;
  return value.type === 'UndefinedValue' ? '' : toRepr(value);
}

/** `repr(value)` of Python. */
export function toRepr(value: Value): string {
  switch (value.type) {
    case 'StringValue':
      return reprOfText(value.value);
    case 'IntegerValue':
      return String(value.value);
    case 'FloatValue':
      return reprOfFloat(value.value);
    case 'BooleanValue':
      return value.value ? 'True' : 'False';
    case 'NullValue':
      return 'None';
    case 'ArrayValue':
      return `[${value.value.map(toRepr).join(', ')}]`;
    case 'ObjectValue':
      return `{${Array.from(value.value, ([key, item]) => `${typeof key === 'string' ? reprOfText(key) : key}: ${toRepr(item)}`).join(', ')}}`;
    default:
      throw new TypeError(`${value.type} has no text`);
  }
}

/** Shortest digits that read back as the same double, in Python's choice between plain and exponent form. */
export function reprOfFloat(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const plain = Object.is(value, -0) ? '-0' : String(value);
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-4 && size < 1e16)) return plain.includes('.') ? plain : `${plain}.0`;
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

const NAMED_ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
/** Everything that Python does not call printable: other, separators but the space, and the backslash. */
const ESCAPED = /[\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

function reprOfText(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  const escaped = value.replace(ESCAPED, (character) => NAMED_ESCAPES[character] ?? escapeOf(character.codePointAt(0) ?? 0));
  return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote;
}

function escapeOf(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

/** What Python takes for white space; JavaScript's own set is another. */
const SPACES =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000';

/** `text.strip(characters)`, at both ends or only one. */
export function strip(text: string, characters = SPACES, only?: 'start' | 'end'): string {
  let start = 0;
  let end = text.length;
  while (only !== 'end' && start < end && characters.includes(text.charAt(start))) start++;
  while (only !== 'start' && end > start && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}
