import { pairsOf } from './attributes.ts';
import { itemsOf, lengthOf } from './iterate.ts';
import { listFilter } from './list-filters.ts';
import { toText } from './python-text.ts';
import { strip } from './spaces.ts';
import { capitalize, replace } from './text-methods.ts';
import { type JsonStyle, PLAIN_JSON, toJson } from './to-json.ts';
import {
  type DictValue,
  float,
  generator,
  integer,
  isDict,
  isInteger,
  isNone,
  isNumber,
  isText,
  isTrue,
  isUndefined,
  list,
  safeText,
  text,
  typeName,
  type Value,
} from './values.ts';

/** What a filter is given besides its value. */
export type FilterArguments = { readonly positional: readonly Value[]; readonly named: ReadonlyMap<string, Value> };
export type Filter = (value: Value, given: FilterArguments) => Value;

const FILTERS: Readonly<Record<string, Filter>> = {
  safe: (value) => safeText(toText(value)),
  string: (value) => (isText(value) ? value : text(toText(value))),
  tojson: (value, given) => text(toJson(value, styleOf(given))),
  default: defaultTo,
  d: defaultTo,
  length: (value) => integer(lengthOf(value)),
  count: (value) => integer(lengthOf(value)),
  items: (value) => generator(isUndefined(value) ? [] : pairsOf(mustBeDict(value).value)),
  trim: (value, given) => text(strip(toText(value), isGiven(given, 0, 'chars') ? toText(argument(given, 0, 'chars')) : null)),
  upper: (value) => text(toText(value).toUpperCase()),
  lower: (value) => text(toText(value).toLowerCase()),
  capitalize: (value) => text(capitalize(toText(value))),
  title: (value) => text(toText(value).replace(/[^-\s([{<]+/g, capitalize)),
  replace: (value, given) =>
    text(replace(toText(value), toText(argument(given, 0, 'old')), toText(argument(given, 1, 'new')), countOf(given))),
  indent: (value, given) => text(indent(toText(value), given)),
  int: (value, given) => toInteger(value, given),
  float: (value, given) => toFloat(value, given),
  abs: (value) => (isInteger(value) ? integer(Math.abs(value.value)) : float(Math.abs(numberOf(value)))),
  round: (value, given) => float(rounded(numberOf(value), isGiven(given, 0, 'precision') ? numberOf(argument(given, 0, 'precision')) : 0)),
  list: (value) => list([...itemsOf(value)]),
};

/** @throws SyntaxError for a name that is no filter. */
export function filterNamed(name: string): Filter {
  const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name] : listFilter(name);
  if (filter === undefined) throw new SyntaxError(`No filter named '${name}'.`);
  return filter;
}

/** An argument by position or by name. */
export function argument({ positional, named }: FilterArguments, index: number, name: string): Value {
  const given = positional[index] ?? named.get(name);
  if (given === undefined) throw new TypeError(`a filter lacks its argument '${name}'`);
  return given;
}

export const isGiven = ({ positional, named }: FilterArguments, index: number, name: string): boolean =>
  positional.length > index || named.has(name);

/** A yes-or-no argument; false when it is not given. */
export const isSet = (given: FilterArguments, index: number, name: string): boolean =>
  isGiven(given, index, name) && isTrue(argument(given, index, name));

function defaultTo(value: Value, given: FilterArguments): Value {
  if (!isUndefined(value) && !(isSet(given, 1, 'boolean') && !isTrue(value))) return value;
  return isGiven(given, 0, 'default_value') ? argument(given, 0, 'default_value') : text('');
}

function styleOf(given: FilterArguments): JsonStyle {
  const separators = isGiven(given, 2, 'separators') ? argument(given, 2, 'separators') : undefined;
  const indent = isGiven(given, 1, 'indent') ? indentOf(argument(given, 1, 'indent')) : null;
  const style = { ...PLAIN_JSON, ensureAscii: isSet(given, 0, 'ensure_ascii'), sortKeys: isSet(given, 3, 'sort_keys'), indent };
  if (separators === undefined || isNone(separators)) return indent === null ? style : { ...style, itemSeparator: ',' };
  const [itemSeparator, keySeparator] = itemsOf(separators).map(toText);
  if (itemSeparator === undefined || keySeparator === undefined) throw new TypeError('tojson: separators are two texts');
  return { ...style, itemSeparator, keySeparator };
}

function indentOf(value: Value): string | null {
  if (isNone(value)) return null;
  return isText(value) ? value.value : ' '.repeat(Math.max(0, numberOf(value)));
}

function indent(value: string, given: FilterArguments): string {
  const width = isGiven(given, 0, 'width') ? argument(given, 0, 'width') : integer(4);
  const margin = isText(width) ? width.value : ' '.repeat(numberOf(width));
  const indented = (line: string) => (line === '' && !isSet(given, 2, 'blank') ? line : margin + line);
  const [head = '', ...rest] = value.split('\n');
  return [isSet(given, 1, 'first') ? indented(head) : head, ...rest.map(indented)].join('\n');
}

function countOf(given: FilterArguments): number {
  return isGiven(given, 2, 'count') && !isNone(argument(given, 2, 'count')) ? numberOf(argument(given, 2, 'count')) : -1;
}

function toInteger(value: Value, given: FilterArguments): Value {
  if (isInteger(value)) return value;
  if (isNumber(value)) return integer(Math.trunc(Number(value.value)));
  const digits = isText(value) ? /^[+-]?\d+(?:_\d+)*(?:\.\d*)?$/.exec(strip(value.value, null))?.[0] : undefined;
  if (digits !== undefined) return integer(Number.parseInt(digits.replaceAll('_', ''), 10));
  return isGiven(given, 0, 'default') ? argument(given, 0, 'default') : integer(0);
}

function toFloat(value: Value, given: FilterArguments): Value {
  if (isNumber(value)) return float(Number(value.value));
  const digits = isText(value) ? strip(value.value, null) : '';
  if (digits !== '' && Number.isFinite(Number(digits))) return float(Number(digits));
  return isGiven(given, 0, 'default') ? argument(given, 0, 'default') : float(0);
}

/** Half goes to the even neighbour, as in Python. */
function rounded(value: number, places: number): number {
  const scaled = value * 10 ** places;
  const floor = Math.floor(scaled);
  const up = scaled - floor > 0.5 || (scaled - floor === 0.5 && floor % 2 !== 0);
  return (up ? floor + 1 : floor) / 10 ** places;
}

function numberOf(value: Value): number {
  if (!isNumber(value)) throw new TypeError(`a number is needed, not '${typeName(value)}'`);
  return Number(value.value);
}

function mustBeDict(value: Value): DictValue {
  if (!isDict(value)) throw new TypeError('Can only get item pairs from a mapping.');
  return value;
}
