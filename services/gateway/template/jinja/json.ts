import { type Node, parseTree } from 'jsonc-parser';
import { reprOfFloat } from './python-text.ts';
import { boolean, dict, float, integer, type Key, list, NONE, text, type Value } from './values.ts';

/**
 * JSON text as a template's value, the way Python's `json.loads` reads it: keys in their order, integers of any size, 1.0 as a float.
 * @throws SyntaxError when it is no JSON.
 */
export function fromJson(json: string): Value {
  JSON.parse(json); // says where and why; what follows takes more than JSON
  return readNode(parseTree(json) as Node, json);
}

function readNode({ type, value, offset, length, children = [] }: Node, json: string): Value {
  if (type === 'object')
    return dict(new Map(children.map(({ children: [key, of] = [] }) => [String(key?.value), readNode(of as Node, json)])));
  if (type === 'array') return list(children.map((child) => readNode(child, json)));
  if (type === 'number') return numberOf(json.slice(offset, offset + length));
  if (type === 'boolean') return boolean(value === true);
  return type === 'null' ? NONE : text(String(value));
}

function numberOf(digits: string): Value {
  const value = Number(digits);
  if (/[.eE]/.test(digits)) return float(value);
  return integer(Number.isSafeInteger(value) ? value + 0 : BigInt(digits));
}

/** What `json.dumps` is told; `indent` is one level's white space, and null writes everything in one line. */
export type JsonStyle = { readonly ensureAscii: boolean; readonly indent: string | null };

/** `json.dumps(value)` of Python. An undefined value is an error there, not null. */
export function toJson(value: Value, style: JsonStyle, margin = '\n'): string {
  const inner = margin + (style.indent ?? '');
  switch (value.type) {
    case 'StringValue':
      return quoted(value.value, style);
    case 'FloatValue':
      return reprOfFloat(value.value).replace('inf', 'Infinity');
    case 'ArrayValue':
    case 'TupleValue':
      return wrapped(
        '[',
        value.value.map((item) => toJson(item, style, inner)),
        ']',
        style,
        margin,
      );
    case 'ObjectValue': {
      const member = ([key, item]: [Key, Value]) => `${quoted(String(key), style)}: ${toJson(item, style, inner)}`;
      return wrapped('{', Array.from(value.value, member), '}', style, margin);
    }
    case 'IntegerValue':
    case 'BooleanValue':
      return String(value.value);
    case 'NullValue':
      return 'null';
    default:
      throw new TypeError(`${value.type} is not JSON serializable`);
  }
}

function wrapped(open: string, parts: readonly string[], close: string, { indent }: JsonStyle, margin: string): string {
  if (parts.length === 0 || indent === null) return open + parts.join(', ') + close;
  return `${open}${margin}${indent}${parts.join(`,${margin}${indent}`)}${margin}${close}`;
}

function quoted(value: string, { ensureAscii }: JsonStyle): string {
  const json = JSON.stringify(value);
  return ensureAscii ? json.replace(/[\x80-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`) : json;
}
