import type { Arguments, Key, Value } from './engine.ts';
import { testNamed } from './operators.ts';
import { strip, toJson, toText } from './python-text.ts';
import { fromKey, integer, isDict, isText, isTrue, itemsOf, list, SafeText, text, UNDEFINED } from './values.ts';

/** Applies the filter of a name, for `map`. */
type Apply = (value: Value, name: string) => Value;
type Filter = (value: Value, given: Arguments, apply: Apply) => Value;

/** Filters that the engine lacks, or that answer otherwise in Python. */
const FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ['string', (value) => text(toText(value))],
  ['safe', (value) => new SafeText(toText(value))],
  ['upper', (value) => text(toText(value).toUpperCase())],
  ['trim', (value, [[characters]]) => text(strip(toText(value), characters && toText(characters)))],
  ['tojson', (value, given) => text(asJson(value, given))],
  ['length', (value) => integer(lengthOf(value))],
  ['list', (value) => list(itemsOf(value))],
  ['join', (value, [[by = text('')]]) => text(Array.from(itemsOf(value), toText).join(toText(by)))],
  ['min', (value) => itemsOf(value).reduce((least, item) => (Number(item.value) < Number(least.value) ? item : least))],
  ['dictsort', (value) => list(sortedPairs(value))],
  ['map', mapped],
  ['select', (value, [[test, other]]) => chosen(value, true, test, other)],
  ['reject', (value, [[test, other]]) => chosen(value, false, test, other)],
  ['selectattr', (value, [[path, test, other]]) => chosen(value, true, test, other, path)],
  ['rejectattr', (value, [[path, test, other]]) => chosen(value, false, test, other, path)],
]);
const NAMED_ARGUMENTS: Readonly<Record<string, readonly string[]>> = { map: ['attribute'], tojson: ['ensure_ascii', 'indent'] };

/** What a filter makes of a value; undefined leaves it to the engine. An argument that would be passed over is refused. */
export function applied(name: string, value: Value, argumentsOf: () => Arguments, apply: Apply): Value | undefined {
  const filter = FILTERS.get(name);
  if (filter === undefined) return undefined;
  const given = argumentsOf();
  const unknown = [...given[1].keys()].find((key) => !NAMED_ARGUMENTS[name]?.includes(key));
  if (unknown !== undefined) throw new TypeError(`${name}: the argument "${unknown}" is not known here`);
  return filter(value, given, apply);
}

function asJson(value: Value, [[ascii, width], named]: Arguments): string {
  const indent = width ?? named.get('indent');
  const margin = indent?.type === 'IntegerValue' ? ' '.repeat(Number(indent.value)) : null;
  return toJson(value, margin, isTrue(ascii ?? named.get('ensure_ascii') ?? UNDEFINED));
}

/** `len(value)`: a text's characters, not its UTF-16 units. */
function lengthOf(value: Value): number {
  if (isText(value)) return value.value.length - (value.value.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
  return isDict(value) ? value.value.size : itemsOf(value).length;
}

/** Entries by their keys; upper and lower case count as one. */
function sortedPairs(value: Value): Value[] {
  if (!isDict(value)) throw new TypeError(`${value.type} has no entries`);
  const folded = (key: Key) => (typeof key === 'string' ? key.toLowerCase() : key);
  const pairs = Array.from(value.value).sort(([a], [b]) => (folded(a) < folded(b) ? -1 : Number(folded(a) > folded(b))));
  return pairs.map(([key, item]) => list([fromKey(key), item]));
}

function mapped(value: Value, [[name = UNDEFINED, ...more], named]: Arguments, apply: Apply): Value {
  if (more.length > 0) throw new TypeError('map: arguments for the filter are not known here');
  const path = named.get('attribute');
  return list(itemsOf(value).map((item) => (path ? entryOf(item, path) : apply(item, toText(name)))));
}

/** Items that pass a test (being true, when none is named), or whose entry passes it. None has no items here. */
function chosen(value: Value, wanted: boolean, test: Value | undefined, other = UNDEFINED, path?: Value): Value {
  const passes = test ? testNamed(toText(test)) : isTrue;
  return list((isTrue(value) ? itemsOf(value) : []).filter((item) => passes(path ? entryOf(item, path) : item, other) === wanted));
}

/** Follows a path like `function.name`. */
function entryOf(item: Value, path: Value): Value {
  const steps = toText(path).split('.');
  return steps.reduce((found, step) => (isDict(found) ? found.value.get(step) : undefined) ?? UNDEFINED, item);
}
