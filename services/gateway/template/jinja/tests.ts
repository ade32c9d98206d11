import { areEqual, operate } from './operators.ts';
import {
  isBoolean,
  isDict,
  isFloat,
  isFunction,
  isGenerator,
  isInteger,
  isList,
  isNone,
  isNumber,
  isText,
  isTrue,
  isUndefined,
  UNDEFINED,
  type Value,
} from './values.ts';

type Test = (value: Value, other: Value) => boolean;

const isSequence: Test = (value) => isList(value) || isText(value) || isDict(value) || isUndefined(value);

/** Jinja's tests (`x is …`), with the answers that Python's types give. */
const TESTS: Readonly<Record<string, Test>> = {
  defined: (value) => !isUndefined(value),
  undefined: isUndefined,
  none: isNone,
  true: (value) => isBoolean(value) && value.value,
  false: (value) => isBoolean(value) && !value.value,
  boolean: isBoolean,
  integer: isInteger,
  float: isFloat,
  number: isNumber,
  string: isText,
  mapping: isDict,
  sequence: (value) => isSequence(value, UNDEFINED),
  iterable: (value) => isSequence(value, UNDEFINED) || isGenerator(value),
  callable: (value) => isFunction(value),
  odd: (value) => isNumber(value) && Math.abs(Number(value.value) % 2) === 1,
  even: (value) => isNumber(value) && Number(value.value) % 2 === 0,
  lower: (value) => isText(value) && value.value === value.value.toLowerCase() && value.value !== value.value.toUpperCase(),
  upper: (value) => isText(value) && value.value === value.value.toUpperCase() && value.value !== value.value.toLowerCase(),
  eq: areEqual,
  equalto: areEqual,
  ne: (value, other) => !areEqual(value, other),
  in: (value, other) => isTrue(operate('in', value, other)),
  lt: (value, other) => isTrue(operate('<', value, other)),
  gt: (value, other) => isTrue(operate('>', value, other)),
  le: (value, other) => isTrue(operate('<=', value, other)),
  ge: (value, other) => isTrue(operate('>=', value, other)),
};

/** @throws SyntaxError for a name that is no test. */
export function testNamed(name: string): Test {
  const test = Object.hasOwn(TESTS, name) ? TESTS[name] : undefined;
  if (test === undefined) throw new SyntaxError(`No test named '${name}'.`);
  return test;
}
