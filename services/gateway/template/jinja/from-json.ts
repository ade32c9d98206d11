import { type Node, parseTree } from 'jsonc-parser';
import { boolean, dict, float, integer, list, NONE, text, type Value } from './values.ts';

/**
 * JSON text as a template's value, the way Python's `json.loads` reads it: keys in their order, integers of any size, 1.0 as a float.
 * @throws SyntaxError when it is no JSON.
 */
export function fromJson(json: string): Value {
  JSON.parse(json); // says where and why; what follows takes more than JSON
  return readNode(parseTree(json) as Node, json);
}

function readNode({ type, value, offset, length, children = [] }: Node, json: string): Value {
  const entryOf = ([key, of]: readonly Node[]) => [String(key?.value), readNode(of as Node, json)] as const;
  if (type === 'object') return dict(new Map(children.map((property) => entryOf(property.children ?? []))));
  if (type === 'array') return list(children.map((child) => readNode(child, json)));
  if (type === 'boolean') return boolean(value === true);
  if (type !== 'number') return type === 'null' ? NONE : text(String(value));
  const digits = json.slice(offset, offset + length);
  if (/[.eE]/.test(digits)) return float(Number(digits));
  return integer(Number.isSafeInteger(Number(digits)) ? Number(digits) + 0 : BigInt(digits));
}
