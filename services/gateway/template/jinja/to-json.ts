import { reprOfFloat } from './python-text.ts';
import { digitsOf, isBoolean, isDict, isFloat, isInteger, isList, isNone, isText, type Key, typeName, type Value } from './values.ts';

/** What `json.dumps` takes. */
export type JsonStyle = {
  readonly ensureAscii: boolean;
  readonly sortKeys: boolean;
  /** One level's white space; null writes everything in one line. */
  readonly indent: string | null;
  readonly itemSeparator: string;
  readonly keySeparator: string;
};

export const PLAIN_JSON: JsonStyle = { ensureAscii: false, sortKeys: false, indent: null, itemSeparator: ', ', keySeparator: ': ' };

/** `json.dumps(value)` of Python. An undefined value is an error there, not null. */
export function toJson(value: Value, style: JsonStyle = PLAIN_JSON, margin = '\n'): string {
  if (isText(value)) return quoted(value.value, style);
  if (isInteger(value)) return digitsOf(value);
  if (isFloat(value)) return jsonFloat(value.value);
  if (isBoolean(value)) return value.value ? 'true' : 'false';
  if (isNone(value)) return 'null';
  if (isList(value)) return wrapped('[', ']', style, margin, (inner) => value.value.map((item) => toJson(item, style, inner)));
  if (isDict(value)) return wrapped('{', '}', style, margin, (inner) => members(value.value, style, inner));
  throw new TypeError(`Object of type ${typeName(value)} is not JSON serializable`);
}

function wrapped(open: string, close: string, style: JsonStyle, margin: string, partsOf: (inner: string) => string[]): string {
  const inner = margin + (style.indent ?? '');
  const parts = partsOf(inner);
  if (parts.length === 0) return open + close;
  if (style.indent === null) return open + parts.join(style.itemSeparator) + close;
  return `${open}${inner}${parts.join(style.itemSeparator + inner)}${margin}${close}`;
}

function members(entries: ReadonlyMap<Key, Value>, style: JsonStyle, inner: string): string[] {
  const pairs = [...entries];
  if (style.sortKeys) pairs.sort(([a], [b]) => byCodePoints(String(a), String(b)));
  return pairs.map(([key, value]) => `${quoted(String(key), style)}${style.keySeparator}${toJson(value, style, inner)}`);
}

function jsonFloat(value: number): string {
  if (Number.isFinite(value)) return reprOfFloat(value);
  return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';
}

const NOT_ASCII = /[\u007f-\uffff]/g;

function quoted(value: string, { ensureAscii }: JsonStyle): string {
  const json = JSON.stringify(value);
  if (ensureAscii)
    return json.replace(NOT_ASCII, (unit) => (unit === '\u007f' ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`));
  // JavaScript escapes half a surrogate pair, Python does not. A backslash of the text itself is doubled, so it cannot be met here.
  return value.isWellFormed()
    ? json
    : json.replace(/\\\\|\\u(d[89a-f][0-9a-f]{2})/g, (found, code?: string) =>
        code === undefined ? found : String.fromCharCode(Number.parseInt(code, 16)),
      );
}

/** Python's order of texts. JavaScript's own differs beyond U+FFFF. */
export function byCodePoints(a: string, b: string): number {
  const left = Array.from(a, (character) => character.codePointAt(0) ?? 0);
  const right = Array.from(b, (character) => character.codePointAt(0) ?? 0);
  const at = left.findIndex((code, index) => code !== right[index]);
  if (at < 0) return left.length - right.length;
  return right[at] === undefined ? 1 : (left[at] as number) - right[at];
}
