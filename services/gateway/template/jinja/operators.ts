import type { TextValue } from './engine.ts';
import { toRepr, toText } from './python-text.ts';
import { boolean, isDict, isNumber, isText, itemsOf, keyOf, SafeText, text, type Value } from './values.ts';

/** Operators that answer otherwise in Python; undefined leaves it to the engine, which calculates and compares numbers. */
export function operate(sign: string, left: Value, right: Value): Value | undefined {
  switch (sign) {
    case '==':
      return boolean(areEqual(left, right));
    case '!=':
      return boolean(!areEqual(left, right));
    case 'in':
      return boolean(isIn(left, right));
    case 'not in':
      return boolean(!isIn(left, right));
    case '~':
      return text(toText(left) + toText(right));
    case '*':
      return isText(left) && right.type === 'IntegerValue' ? text(left.value.repeat(Math.max(0, Number(right.value)))) : undefined;
    case '+':
      if (isText(left) && isText(right)) return added(left, right);
      if (isText(left) || isText(right)) throw new TypeError(`a text cannot be added: ${left.type} + ${right.type}`);
  }
  return undefined;
}

/** By type and content, numbers and booleans by value. */
export function areEqual(left: Value, right: Value): boolean {
  if (isNumber(left) && isNumber(right)) return Number(left.value) === Number(right.value);
  if (left.type !== right.type) return false;
  return left.value === right.value || (typeof left.value === 'object' && toRepr(left) === toRepr(right));
}

export function isIn(left: Value, right: Value): boolean {
  if (isDict(right)) return right.value.has(keyOf(left));
  if (!isText(right)) return itemsOf(right).some((item) => areEqual(item, left));
  if (isText(left)) return right.value.includes(left.value);
  throw new TypeError(`${left.type} cannot be in a text`);
}

function added(left: TextValue, right: TextValue): Value {
  if (!(left instanceof SafeText || right instanceof SafeText)) return text(left.value + right.value);
  return new SafeText([left, right].map((part) => (part instanceof SafeText ? part.value : escaped(part.value))).join(''));
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };
const escaped = (value: string): string => value.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character);
