import { Environment, type TextValue, type Value } from './engine.ts';
import { toRepr, toText } from './python-text.ts';
import { boolean, isDict, isList, isNumber, isText, isUndefined, itemsOf, keyOf, SafeText, text } from './values.ts';

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
function areEqual(left: Value, right: Value): boolean {
  if (isNumber(left) && isNumber(right)) return Number(left.value) === Number(right.value);
  if (left.type !== right.type) return false;
  return left.value === right.value || (typeof left.value === 'object' && toRepr(left) === toRepr(right));
}

function isIn(left: Value, right: Value): boolean {
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

type Test = (value: Value, other: Value) => boolean;

/** The engine's tests (`x is …`), and those that it lacks or that answer otherwise in Python. */
const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ...new Environment().tests,
  ['iterable', (value) => isList(value) || isText(value) || isDict(value) || isUndefined(value)],
  ['float', (value) => value.type === 'FloatValue'],
  ['in', isIn],
]);

/** @throws SyntaxError for a name that is no test. */
export function testNamed(name: string): Test {
  const test = TESTS.get(name);
  if (test === undefined) throw new SyntaxError(`No test named '${name}'.`);
  return test;
}
