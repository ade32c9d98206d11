import type { LoopValue } from './engine.ts';
import { areEqual } from './operators.ts';
import { textMethod } from './text-methods.ts';
import {
  boolean,
  callable,
  dict,
  fromKey,
  integer,
  isDict,
  isInteger,
  isList,
  isLoop,
  isNamespace,
  isText,
  isUndefined,
  type Key,
  keyOf,
  list,
  NONE,
  text,
  tuple,
  typeName,
  UNDEFINED,
  type Value,
} from './values.ts';

/** `value.name` of a template: a method of the type before a dict's own entry, as Jinja looks it up. */
export function attributeOf(value: Value, name: string): Value {
  if (isDict(value)) return methodOf(value, name) ?? value.value.get(name) ?? UNDEFINED;
  if (isNamespace(value)) return value.value.get(name) ?? UNDEFINED;
  if (isLoop(value)) return loopAttribute(value.value, name);
  return methodOf(value, name) ?? UNDEFINED;
}

/** `value[key]`: a dict's own entry before a method; a position, counted from the end when negative, in lists and texts. */
export function itemOf(value: Value, key: Value): Value {
  if (isDict(value)) return entryOf(value.value, key) ?? methodNamed(value, key) ?? UNDEFINED;
  if (isNamespace(value)) return entryOf(value.value, key) ?? UNDEFINED;
  if (isInteger(key)) {
    if (isList(value)) return value.value.at(key.value) ?? UNDEFINED;
    if (isText(value)) return characterAt(value.value, key.value);
  }
  if (isLoop(value) && isText(key)) return loopAttribute(value.value, key.value);
  return methodNamed(value, key) ?? UNDEFINED;
}

function loopAttribute({ items, index }: LoopValue['value'], name: string): Value {
  switch (name) {
    case 'index':
      return integer(index + 1);
    case 'index0':
      return integer(index);
    case 'revindex':
      return integer(items.length - index);
    case 'revindex0':
      return integer(items.length - index - 1);
    case 'first':
      return boolean(index === 0);
    case 'last':
      return boolean(index === items.length - 1);
    case 'length':
      return integer(items.length);
    case 'previtem':
      return items[index - 1] ?? UNDEFINED;
    case 'nextitem':
      return items[index + 1] ?? UNDEFINED;
    case 'cycle':
      return callable((choices) => choices[index % choices.length] ?? UNDEFINED);
    default:
      return UNDEFINED;
  }
}

function entryOf(entries: ReadonlyMap<Key, Value>, key: Value): Value | undefined {
  return isList(key) || isDict(key) || isUndefined(key) ? undefined : entries.get(keyOf(key));
}

function methodNamed(value: Value, key: Value): Value | undefined {
  return isText(key) ? methodOf(value, key.value) : undefined;
}

function characterAt(value: string, at: number): Value {
  const found = Array.from(value).at(at);
  return found === undefined ? UNDEFINED : text(found);
}

/** The sandbox that templates run in gives out no method that changes a value; calling one is an error. */
function methodOf(value: Value, name: string): Value | undefined {
  if (isText(value)) {
    const method = textMethod(name);
    return method && callable((args) => method(value.value, args));
  }
  if (isDict(value)) return dictMethod(value.value, name);
  if (isList(value)) return listMethod(value.value, name);
  return undefined;
}

const CHANGING = new Set(['append', 'clear', 'extend', 'insert', 'pop', 'popitem', 'remove', 'reverse', 'setdefault', 'sort', 'update']);

function refused(type: string, name: string): Value {
  return callable(() => {
    throw new TypeError(`access to attribute '${name}' of '${type}' object is unsafe: templates cannot change values`);
  });
}

function dictMethod(entries: ReadonlyMap<Key, Value>, name: string): Value | undefined {
  switch (name) {
    case 'get':
      return callable(([key, otherwise]) => (key && entryOf(entries, key)) ?? otherwise ?? NONE);
    case 'items':
      return callable(() => list(pairsOf(entries)));
    case 'keys':
      return callable(() => list(Array.from(entries.keys(), fromKey)));
    case 'values':
      return callable(() => list([...entries.values()]));
    case 'copy':
      return callable(() => dict(new Map(entries)));
    case 'clear':
    case 'pop':
    case 'popitem':
    case 'setdefault':
    case 'update':
      return refused('dict', name);
    default:
      return undefined;
  }
}

/** A dict's entries as tuples, in their order. */
export const pairsOf = (entries: ReadonlyMap<Key, Value>): Value[] => Array.from(entries, ([key, value]) => tuple([fromKey(key), value]));

function listMethod(items: readonly Value[], name: string): Value | undefined {
  if (name === 'index') return callable(([wanted]) => integer(indexIn(items, wanted)));
  if (name === 'count') return callable(([wanted]) => integer(items.filter((item) => wanted && areEqual(item, wanted)).length));
  return CHANGING.has(name) ? refused('list', name) : undefined;
}

function indexIn(items: readonly Value[], wanted: Value | undefined): number {
  const at = items.findIndex((item) => wanted && areEqual(item, wanted));
  if (at < 0) throw new RangeError(`${wanted ? typeName(wanted) : 'nothing'} is not in list`);
  return at;
}
