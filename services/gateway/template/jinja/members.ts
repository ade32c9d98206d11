import type { LoopValue } from './engine.ts';
import { strip, toText } from './python-text.ts';
import { boolean, callable, integer, isDict, isList, isText, itemsOf, keyOf, text, UNDEFINED, type Value } from './values.ts';

/** `value.name`: a dict's method goes before its entry of that name. */
export function attributeOf(value: Value, name: string): Value {
  if (isDict(value)) return (DICT_METHODS.has(name) ? value.builtins.get(name) : value.value.get(name)) ?? UNDEFINED;
  if (value.type === 'NamespaceValue') return value.value.get(name) ?? UNDEFINED;
  if (value.type === 'LoopValue') return LOOP.get(name)?.(value.value) ?? UNDEFINED;
  if (!isText(value) || name === 'length') return UNDEFINED;
  const method = TEXT_METHODS.get(name);
  return method ? callable((args) => text(method(value.value, args))) : (value.builtins.get(name) ?? UNDEFINED);
}

/** `value[key]`: a dict's entry; a position, counted from the end when negative, in lists and texts. */
export function itemOf(value: Value, key: Value): Value {
  if (isDict(value)) return value.value.get(keyOf(key)) ?? UNDEFINED;
  if (key.type !== 'IntegerValue' || !(isList(value) || isText(value))) return UNDEFINED;
  return itemsOf(value).at(Number(key.value)) ?? UNDEFINED;
}

const DICT_METHODS: ReadonlySet<string> = new Set(['get', 'items', 'keys', 'values']);

/** Methods of texts that the engine lacks, or whose arguments and white space it passes over. */
const TEXT_METHODS = new Map<string, (self: string, args: readonly Value[]) => string>([
  ['strip', (self, [characters]) => strip(self, characters && toText(characters))],
  ['lstrip', (self, [characters]) => strip(self, characters && toText(characters), 'start')],
  ['rstrip', (self, [characters]) => strip(self, characters && toText(characters), 'end')],
  ['format', format],
]);

/** `{}` in turn; anything finer is refused. */
function format(self: string, args: readonly Value[]): string {
  const parts = self.split('{}');
  if (/[{}]/.test(parts.join('')) || parts.length !== args.length + 1) throw new TypeError('str.format: only {} is known here');
  return parts.map((part, index) => (args[index] ? part + toText(args[index]) : part)).join('');
}

/** What `loop` says in a round of a loop. */
const LOOP = new Map<string, (at: LoopValue['value']) => Value | undefined>([
  ['index', ({ index }) => integer(index + 1)],
  ['index0', ({ index }) => integer(index)],
  ['revindex', ({ items, index }) => integer(items.length - index)],
  ['revindex0', ({ items, index }) => integer(items.length - index - 1)],
  ['first', ({ index }) => boolean(index === 0)],
  ['last', ({ items, index }) => boolean(index === items.length - 1)],
  ['length', ({ items }) => integer(items.length)],
  ['previtem', ({ items, index }) => items[index - 1]],
  ['nextitem', ({ items, index }) => items[index + 1]],
]);
