import { toText } from './python-text.ts';
import { byCodePoints } from './to-json.ts';
import {
  boolean,
  digitsOf,
  float,
  integer,
  isDict,
  isFloat,
  isGenerator,
  isInteger,
  isList,
  isNone,
  isNumber,
  isSafe,
  isText,
  isTuple,
  isUndefined,
  keyOf,
  list,
  safeText,
  type TextValue,
  text,
  tuple,
  typeName,
  type Value,
} from './values.ts';

/** Python's operators, by their sign in a template; `and` and `or` are elsewhere, since they may leave out their right side. */
export function operate(sign: string, left: Value, right: Value): Value {
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
    case '<':
      return boolean(compare(sign, left, right) < 0);
    case '>':
      return boolean(compare(sign, left, right) > 0);
    case '<=':
      return boolean(compare(sign, left, right) <= 0);
    case '>=':
      return boolean(compare(sign, left, right) >= 0);
    default:
      return calculate(sign, left, right);
  }
}

/** `left == right`: by type and content, numbers and booleans by value. */
export function areEqual(left: Value, right: Value): boolean {
  if (isNumber(left) && isNumber(right)) {
    if (isInteger(left) && isInteger(right)) return digitsOf(left) === digitsOf(right);
    return Number(left.value) === Number(right.value);
  }
  if (left.type !== right.type) return false;
  if (isList(left) && isList(right)) {
    const others = right.value;
    return left.value.length === others.length && left.value.every((item, index) => areEqual(item, others[index] as Value));
  }
  if (isDict(left) && isDict(right)) {
    const others = right.value;
    return (
      left.value.size === others.size && [...left.value].every(([key, item]) => others.has(key) && areEqual(item, others.get(key) as Value))
    );
  }
  return isNone(left) || isUndefined(left) || left.value === right.value;
}

/** `left in right`. */
function isIn(left: Value, right: Value): boolean {
  if (isUndefined(right)) return false; // it is an empty sequence
  if (isList(right) || isGenerator(right)) return right.value.some((item) => areEqual(item, left));
  if (isDict(right)) return isNone(left) || isUndefined(left) ? false : right.value.has(keyOf(left));
  if (!isText(right)) throw new TypeError(`argument of type '${typeName(right)}' is not iterable`);
  if (!isText(left)) throw new TypeError(`'in <string>' requires string as left operand, not ${typeName(left)}`);
  return right.value.includes(left.value);
}

/** Negative, zero or positive, as in a sort. */
export function compare(sign: string, left: Value, right: Value): number {
  if (isNumber(left) && isNumber(right)) return Number(left.value) - Number(right.value);
  if (isText(left) && isText(right)) return byCodePoints(left.value, right.value);
  if (isList(left) && isList(right) && isTuple(left) === isTuple(right)) {
    const others = right.value;
    const at = left.value.findIndex((item, index) => others[index] === undefined || !areEqual(item, others[index]));
    if (at < 0 || others[at] === undefined) return left.value.length - others.length;
    return compare(sign, left.value[at] as Value, others[at]);
  }
  throw new TypeError(`'${sign}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`);
}

function calculate(sign: string, left: Value, right: Value): Value {
  if (isNumber(left) && isNumber(right)) {
    const result = numbers(sign, Number(left.value), Number(right.value));
    return sign === '/' || isFloat(left) || isFloat(right) || !Number.isInteger(result) ? float(result) : integer(result);
  }
  if (sign === '+') {
    if (isText(left) && isText(right)) return added(left, right);
    if (isList(left) && isList(right) && isTuple(left) === isTuple(right)) {
      const joined = [...left.value, ...right.value];
      return isTuple(left) ? tuple(joined) : list(joined);
    }
  }
  if (sign === '*' && isText(left) && isInteger(right)) return text(left.value.repeat(Math.max(0, right.value)));
  if (sign === '*' && isInteger(left) && isText(right)) return text(right.value.repeat(Math.max(0, left.value)));
  throw new TypeError(`unsupported operand type(s) for ${sign}: '${typeName(left)}' and '${typeName(right)}'`);
}

function added(left: TextValue, right: TextValue): Value {
  if (!isSafe(left) && !isSafe(right)) return text(left.value + right.value);
  return safeText((isSafe(left) ? left.value : escaped(left.value)) + (isSafe(right) ? right.value : escaped(right.value)));
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };
const escaped = (value: string): string => value.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character);

function numbers(sign: string, left: number, right: number): number {
  switch (sign) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '**':
      return left ** right;
    case '/':
      return left / divisor(right);
    case '//':
      return Math.floor(left / divisor(right));
    case '%':
      return left - right * Math.floor(left / divisor(right));
    default:
      throw new SyntaxError(`"${sign}" is not an operator known here`);
  }
}

function divisor(value: number): number {
  if (value === 0) throw new RangeError('division by zero');
  return value;
}
