import type { Key, Value } from './engine.ts';

/** How values are written: as Python's `repr` does, or as JSON. */
type Style = {
  readonly words: readonly [none: string, yes: string, no: string, infinity: string];
  readonly quote: (key: Key) => string;
  readonly tuple: string;
  /** One level's white space; null writes everything in one line. */
  readonly indent: string | null;
};

const quoteForRepr = (key: Key): string => (typeof key === 'string' ? reprOfText(key) : String(key));
const REPR: Style = { words: ['None', 'True', 'False', 'inf'], quote: quoteForRepr, tuple: '()', indent: null };

/** `str(value)` of Python, which is also what `{{ value }}` prints; an undefined value is the empty text. */
export function toText(value: Value): string {
  if (value.type === 'StringValue') return value.value;
  return value.type === 'UndefinedValue' ? '' : toRepr(value);
}

/** `repr(value)` of Python. */
export const toRepr = (value: Value): string => written(value, REPR, '\n');

/** `json.dumps(value)` of Python. An undefined value is an error there, not null. */
export function toJson(value: Value, indent: string | null, isAscii: boolean): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const plain = (key: Key) => JSON.stringify(String(key));
  const quote = isAscii ? (key: Key) => plain(key).replace(/[\x80-\uffff]/g, escaped) : plain;
  return written(value, { words: ['null', 'true', 'false', 'Infinity'], quote, tuple: '[]', indent }, '\n');
}

function written(value: Value, style: Style, margin: string): string {
  const [none, yes, no, infinity] = style.words;
  const inner = margin + (style.indent ?? '');
  switch (value.type) {
    case 'StringValue':
      return style.quote(value.value);
    case 'IntegerValue':
      return String(value.value);
    case 'FloatValue':
      return Number.isFinite(value.value) ? digitsOf(value.value) : (value.value < 0 ? '-' : '') + infinity;
    case 'BooleanValue':
      return value.value ? yes : no;
    case 'NullValue':
      return none;
    case 'ArrayValue':
    case 'TupleValue': {
      const items = value.value.map((item) => written(item, style, inner));
      return wrapped(value.type === 'TupleValue' ? style.tuple : '[]', items, style, margin);
    }
    case 'ObjectValue': {
      const entries = Array.from(value.value, ([key, item]) => `${style.quote(key)}: ${written(item, style, inner)}`);
      return wrapped('{}', entries, style, margin);
    }
    default:
      throw new TypeError(`${value.type} cannot be written`);
  }
}

function wrapped(brackets: string, parts: readonly string[], { indent }: Style, margin: string): string {
  const [open = '', close = ''] = brackets;
  if (indent === null || parts.length === 0) return open + parts.join(', ') + close;
  return open + margin + indent + parts.join(`,${margin}${indent}`) + margin + close;
}

/** Shortest digits that read back as the same double, in Python's choice between plain and exponent form. */
function digitsOf(value: number): string {
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
