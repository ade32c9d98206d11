import { fromKey, isDict, isGenerator, isList, isText, isUndefined, text, typeName, type Value } from './values.ts';

/** The items that Python's `for` would see: a dict's keys, a text's characters, nothing of an undefined value. */
export function itemsOf(value: Value): readonly Value[] {
  if (isList(value) || isGenerator(value)) return value.value;
  if (isDict(value)) return Array.from(value.value.keys(), fromKey);
  if (isText(value)) return Array.from(value.value, text);
  if (isUndefined(value)) return [];
  throw new TypeError(`'${typeName(value)}' object is not iterable`);
}

/** `len(value)`: a text's characters, not its UTF-16 units. */
export function lengthOf(value: Value): number {
  if (isDict(value)) return value.value.size;
  if (isText(value)) return countCharacters(value.value);
  if (isList(value)) return value.value.length;
  if (isUndefined(value)) return 0;
  throw new TypeError(`object of type '${typeName(value)}' has no len()`);
}

function countCharacters(value: string): number {
  let count = value.length;
  for (let at = 0; at + 1 < value.length; at++) {
    if ((value.charCodeAt(at) & 0xfc00) === 0xd800 && (value.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
      count--;
      at++;
    }
  }
  return count;
}
