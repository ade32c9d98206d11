import {
  digitsOf,
  isBoolean,
  isDict,
  isFloat,
  isInteger,
  isList,
  isNamespace,
  isNone,
  isText,
  isTuple,
  isUndefined,
  type Key,
  typeName,
  type Value,
} from './values.ts';

/** `str(value)` of Python, which is also what `{{ value }}` prints; an undefined value is the empty text. */
export function toText(value: Value): string {
  if (isText(value)) return value.value;
  return isUndefined(value) ? '' : toRepr(value);
}

/** `repr(value)` of Python. */
export function toRepr(value: Value): string {
  if (isText(value)) return reprOfText(value.value);
  if (isInteger(value)) return digitsOf(value);
  if (isFloat(value)) return reprOfFloat(value.value);
  if (isBoolean(value)) return value.value ? 'True' : 'False';
  if (isNone(value)) return 'None';
  if (isUndefined(value)) return 'Undefined';
  if (isTuple(value)) return `(${value.value.map(toRepr).join(', ')}${value.value.length === 1 ? ',' : ''})`;
  if (isList(value)) return `[${value.value.map(toRepr).join(', ')}]`;
  if (isDict(value)) return reprOfDict(value.value);
  if (isNamespace(value)) return `<Namespace ${reprOfDict(value.value)}>`;
  throw new TypeError(`a value of type '${typeName(value)}' has no text that is the same everywhere`);
}

function reprOfDict(entries: ReadonlyMap<Key, Value>): string {
  return `{${Array.from(entries, ([key, value]) => `${typeof key === 'string' ? reprOfText(key) : key}: ${toRepr(value)}`).join(', ')}}`;
}

/** Shortest digits that read back as the same double, in Python's choice between plain and exponent form. */
export function reprOfFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa = '0', exponent = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const point = Number(exponent);
  if (value === 0) return `${sign}0.0`;
  if (point < -4 || point >= 16) return `${sign}${mantissa}e${point < 0 ? '-' : '+'}${String(Math.abs(point)).padStart(2, '0')}`;
  if (point < 0) return `${sign}0.${'0'.repeat(-point - 1)}${digits}`;
  const padded = digits.padEnd(point + 1, '0');
  return `${sign}${padded.slice(0, point + 1)}.${padded.slice(point + 1) || '0'}`;
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
