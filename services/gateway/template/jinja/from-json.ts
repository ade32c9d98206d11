import { type Node, type ParseError, parseTree } from 'jsonc-parser';
import { boolean, dict, float, integerOf, type Key, list, NONE, text, type Value } from './values.ts';

/**
 * JSON text as a template's value, the way Python's `json.loads` reads it: keys in their order, integers of any size, 1.0 as a float.
 * @throws SyntaxError when it is no JSON.
 */
export function fromJson(json: string): Value {
  JSON.parse(json); // says where and why; what follows takes more than JSON
  const errors: ParseError[] = [];
  const root = parseTree(json, errors, { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false });
  if (root === undefined || errors.length > 0) throw new SyntaxError('this is no JSON');
  return readNode(root, json);
}

function readNode(node: Node, json: string): Value {
  switch (node.type) {
    case 'string':
      return text(node.value as string);
    case 'number':
      return numberOf(json.slice(node.offset, node.offset + node.length));
    case 'boolean':
      return boolean(node.value as boolean);
    case 'null':
      return NONE;
    case 'array':
      return list((node.children ?? []).map((child) => readNode(child, json)));
    default:
      return dict(new Map((node.children ?? []).map((property) => entryOf(property, json))));
  }
}

function entryOf({ children: [key, value] = [] }: Node, json: string): [Key, Value] {
  if (key === undefined || value === undefined) throw new SyntaxError('this is no JSON: a property has no value');
  return [key.value as string, readNode(value, json)];
}

function numberOf(source: string): Value {
  return /[.eE]/.test(source) ? float(Number(source)) : integerOf(source);
}
