import { attributeOf, pairsOf } from './attributes.ts';
import { argument, type Filter, type FilterArguments, filterNamed, isGiven, isSet } from './filters.ts';
import { itemsOf } from './iterate.ts';
import { areEqual, compare, operate } from './operators.ts';
import { toText } from './python-text.ts';
import { testNamed } from './tests.ts';
import { generator, integer, isDict, isInteger, isList, isNone, isText, isTrue, list, text, UNDEFINED, type Value } from './values.ts';

const FILTERS: Readonly<Record<string, Filter>> = {
  first: (value) => itemsOf(value)[0] ?? UNDEFINED,
  last: (value) => itemsOf(value).at(-1) ?? UNDEFINED,
  reverse: (value) => (isText(value) ? text(itemsOf(value).map(toText).reverse().join('')) : generator([...itemsOf(value)].reverse())),
  join: (value, given) =>
    text(
      attributes(value, given, 1)
        .map(toText)
        .join(isGiven(given, 0, 'd') ? toText(argument(given, 0, 'd')) : ''),
    ),
  map: (value, given) => generator(mapped(value, given)),
  select: (value, given) => generator(chosen(value, given, 0, true)),
  reject: (value, given) => generator(chosen(value, given, 0, false)),
  selectattr: (value, given) => generator(chosen(value, given, 1, true)),
  rejectattr: (value, given) => generator(chosen(value, given, 1, false)),
  unique: (value, given) => generator(unique(value, given)),
  sort: (value, given) => list(sorted(value, given)),
  dictsort: (value, given) => list(dictSorted(value, given)),
  min: (value) => extreme(value, -1),
  max: (value) => extreme(value, 1),
  sum: (value) => itemsOf(value).reduce((sum, item) => operate('+', sum, item), integer(0)),
};

/** Filters that work on items; undefined when none has the name. */
export function listFilter(name: string): Filter | undefined {
  return Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
}

/** Follows a path like `function.name` or `items.0`. */
function pathOf(item: Value, path: Value): Value {
  if (isInteger(path)) return itemsOf(item)[path.value] ?? UNDEFINED;
  let found = item;
  for (const step of toText(path).split('.')) {
    // A number is a position; otherwise an entry goes before a method here.
    if (/^\d+$/.test(step) && isList(found)) found = found.value[Number(step)] ?? UNDEFINED;
    else found = (isDict(found) ? found.value.get(step) : undefined) ?? attributeOf(found, step);
  }
  return found;
}

function attributes(value: Value, given: FilterArguments, index: number): readonly Value[] {
  if (!isGiven(given, index, 'attribute')) return itemsOf(value);
  const path = argument(given, index, 'attribute');
  return isNone(path) ? itemsOf(value) : itemsOf(value).map((item) => pathOf(item, path));
}

function mapped(value: Value, given: FilterArguments): Value[] {
  if (!isTrue(value)) return [];
  if (given.named.has('attribute')) {
    const otherwise = given.named.get('default') ?? UNDEFINED;
    return itemsOf(value).map((item) => {
      const found = pathOf(item, argument(given, Number.POSITIVE_INFINITY, 'attribute'));
      return found === UNDEFINED ? otherwise : found;
    });
  }
  const filter = filterNamed(toText(argument(given, 0, 'filter')));
  return itemsOf(value).map((item) => filter(item, { positional: given.positional.slice(1), named: given.named }));
}

/** Items that pass a test (being true, when none is named); with `skip` 1 the test is made on an attribute. */
function chosen(value: Value, { positional }: FilterArguments, skip: 0 | 1, wanted: boolean): Value[] {
  if (!isTrue(value)) return []; // None as well: only what is true is gone through
  const [name, other = UNDEFINED] = positional.slice(skip);
  const path = positional[0];
  const passes = name === undefined ? (item: Value) => isTrue(item) : testNamed(toText(name));
  return itemsOf(value).filter((item) => passes(skip === 1 && path !== undefined ? pathOf(item, path) : item, other) === wanted);
}

/** Upper and lower case count as one unless it is asked otherwise. */
function folded(value: Value, isCaseSensitive: boolean): Value {
  return isText(value) && !isCaseSensitive ? text(value.value.toLowerCase()) : value;
}

function unique(value: Value, given: FilterArguments): Value[] {
  const keys = attributes(value, given, 1).map((key) => folded(key, isSet(given, 0, 'case_sensitive')));
  return itemsOf(value).filter((_, index) => keys.findIndex((key) => areEqual(key, keys[index] as Value)) === index);
}

function sorted(value: Value, given: FilterArguments): Value[] {
  const keys = attributes(value, given, 2).map((key) => folded(key, isSet(given, 1, 'case_sensitive')));
  const sign = isSet(given, 0, 'reverse') ? -1 : 1;
  const order = keys.map((_, index) => index).sort((a, b) => sign * compare('<', keys[a] as Value, keys[b] as Value));
  const items = itemsOf(value);
  return order.map((index) => items[index] as Value);
}

function dictSorted(value: Value, given: FilterArguments): Value[] {
  if (!isDict(value)) throw new TypeError('dictsort: a dict is needed');
  const part = isGiven(given, 1, 'by') && toText(argument(given, 1, 'by')) === 'value' ? 1 : 0;
  const sign = isSet(given, 2, 'reverse') ? -1 : 1;
  const keyOf = (pair: Value) => folded(itemsOf(pair)[part] as Value, isSet(given, 0, 'case_sensitive'));
  return pairsOf(value.value).sort((a, b) => sign * compare('<', keyOf(a), keyOf(b)));
}

function extreme(value: Value, sign: 1 | -1): Value {
  const items = itemsOf(value);
  return items.reduce(
    (best, item) => (sign * compare('<', folded(item, false), folded(best, false)) > 0 ? item : best),
    items[0] ?? UNDEFINED,
  );
}
