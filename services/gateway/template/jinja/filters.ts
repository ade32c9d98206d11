import { type Arguments, Environment } from './engine.ts';
import { type JsonStyle, toJson } from './json.ts';
import { areEqual, isIn } from './operators.ts';
import { strip, toText } from './python-text.ts';
import {
  fromKey,
  integer,
  isDict,
  isList,
  isNumber,
  isText,
  isTrue,
  isUndefined,
  itemsOf,
  type Key,
  list,
  SafeText,
  text,
  UNDEFINED,
  type Value,
} from './values.ts';

/** `apply` is for `map`, which applies the filter of a name. */
export type Filter = (value: Value, given: Arguments, apply: (value: Value, name: string) => Value) => Value;

/** The arguments that these filters are given by name; any other is refused, not passed over. */
export const ARGUMENT_NAMES: ReadonlySet<string> = new Set(['attribute', 'ensure_ascii', 'indent']);

/** Filters that the engine lacks, or that answer otherwise in Python. */
export const FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ['string', (value) => text(toText(value))],
  ['safe', (value) => new SafeText(toText(value))],
  ['upper', (value) => text(toText(value).toUpperCase())],
  ['lower', (value) => text(toText(value).toLowerCase())],
  ['trim', (value, [[characters]]) => text(strip(toText(value), characters && toText(characters)))],
  ['tojson', (value, given) => text(toJson(value, jsonStyle(given)))],
  ['length', (value) => integer(lengthOf(value))],
  ['list', (value) => list(itemsOf(value))],
  [
    'join',
    (value, [[separator]]) =>
      text(
        itemsOf(value)
          .map(toText)
          .join(separator ? toText(separator) : ''),
      ),
  ],
  ['min', (value) => itemsOf(value).reduce((least, item) => (Number(item.value) < Number(least.value) ? item : least))],
  ['dictsort', (value) => list(sortedPairs(value))],
  ['map', mapped],
  ['select', (value, [[test, other]]) => chosen(value, true, test, other)],
  ['reject', (value, [[test, other]]) => chosen(value, false, test, other)],
  ['selectattr', (value, [[path, test, other]]) => chosen(value, true, test, other, path)],
  ['rejectattr', (value, [[path, test, other]]) => chosen(value, false, test, other, path)],
]);

/** `len(value)`: a text's characters, not its UTF-16 units. */
function lengthOf(value: Value): number {
  if (isText(value)) return value.value.length - (value.value.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
  return isDict(value) ? value.value.size : itemsOf(value).length;
}

function jsonStyle([, named]: Arguments): JsonStyle {
  const indent = named.get('indent');
  return {
    ensureAscii: isTrue(named.get('ensure_ascii') ?? UNDEFINED),
    indent: indent?.type === 'IntegerValue' ? ' '.repeat(Number(indent.value)) : null,
  };
}

/** Entries by their keys; upper and lower case count as one. */
function sortedPairs(value: Value): Value[] {
  if (!isDict(value)) throw new TypeError(`${value.type} has no entries`);
  const folded = (key: Key) => (typeof key === 'string' ? key.toLowerCase() : key);
  const pairs = Array.from(value.value).sort(([a], [b]) => (folded(a) < folded(b) ? -1 : Number(folded(a) > folded(b))));
  return pairs.map(([key, item]) => list([fromKey(key), item]));
}

function mapped(value: Value, [[name = UNDEFINED], named]: Arguments, apply: Parameters<Filter>[2]): Value {
  const path = named.get('attribute');
  return list(itemsOf(value).map((item) => (path ? entryOf(item, path) : apply(item, toText(name)))));
}

/** Items that pass a test (being true, when none is named), or whose entry passes it. None has no items here. */
function chosen(value: Value, wanted: boolean, test: Value | undefined, other = UNDEFINED, path?: Value): Value {
  const passes = test ? testNamed(toText(test)) : isTrue;
  return list((isTrue(value) ? itemsOf(value) : []).filter((item) => passes(path ? entryOf(item, path) : item, other) === wanted));
}

const entryOf = (item: Value, path: Value): Value =>
  toText(path)
    .split('.')
    .reduce((found, step) => (isDict(found) ? found.value.get(step) : undefined) ?? UNDEFINED, item);

type Test = (value: Value, other: Value) => boolean;
const isSequence: Test = (value) => isList(value) || isText(value) || isDict(value) || isUndefined(value);

/** The engine's tests (`x is …`), and those that it lacks or that answer otherwise in Python. */
const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ...new Environment().tests,
  ['iterable', isSequence],
  ['sequence', isSequence],
  ['number', isNumber],
  ['float', (value) => value.type === 'FloatValue'],
  ['eq', areEqual],
  ['equalto', areEqual],
  ['in', isIn],
]);

/** @throws SyntaxError for a name that is no test. */
export function testNamed(name: string): Test {
  const test = TESTS.get(name);
  if (test === undefined) throw new SyntaxError(`No test named '${name}'.`);
  return test;
}
