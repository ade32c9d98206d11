import {
  type BooleanValue,
  type Callable,
  type DictValue,
  Environment,
  type FloatValue,
  type FunctionValue,
  type GeneratorValue,
  type IntegerValue,
  Interpreter,
  type Key,
  type KeywordsValue,
  type ListValue,
  type LoopValue,
  type NamespaceValue,
  type NoneValue,
  parseTemplate,
  type TextValue,
  type TupleValue,
  type UndefinedValue,
  type Value,
} from './engine.ts';

export type { Callable, DictValue, Key, TextValue, Value } from './engine.ts';

type Maker<T extends Value> = new (value: T['value']) => T;

/** The engine exports no classes of its values, but makes one of each on request. */
function classOf<T extends Value>(value: Value | undefined): Maker<T> {
  if (value === undefined) throw new Error('the template engine made no value');
  return value.constructor as unknown as Maker<T>;
}

function madeBy(template: string): Value | undefined {
  const scope = new Environment();
  new Interpreter(scope).run(parseTemplate(template));
  return scope.variables.get('made');
}

const samples = new Environment();
const TextClass = classOf<TextValue>(samples.set('text', ''));
const IntegerClass = classOf<IntegerValue>(samples.set('integer', 0));
const FloatClass = classOf<FloatValue>(samples.set('float', 0.5));
const BooleanClass = classOf<BooleanValue>(samples.set('boolean', true));
const NoneClass = classOf<NoneValue>(samples.set('none', null));
const UndefinedClass = classOf<UndefinedValue>(samples.set('undefined', undefined));
const ListClass = classOf<ListValue>(samples.set('list', []));
const DictClass = classOf<DictValue>(samples.set('dict', {}));
const FunctionClass = classOf<FunctionValue>(samples.set('function', () => null));
const TupleClass = classOf<TupleValue>(madeBy('{% set made = (1, 2) %}'));

/** An integer that a double cannot hold: Python's have no limit. Arithmetic with it is done in doubles. */
class LongInteger extends IntegerClass {
  readonly digits: string;

  constructor(digits: string) {
    super(Number(digits));
    this.digits = digits;
  }
}

/** Of the engine's list class, so that the engine goes through it as well. */
class Generator extends (ListClass as unknown as Maker<GeneratorValue>) {
  override readonly type = 'GeneratorValue';
}

/** A text that `safe` has marked: adding another to it escapes that one for HTML, as Python's Markup does. */
class SafeText extends TextClass {}

export const NONE: Value = new NoneClass(null);
export const UNDEFINED: Value = new UndefinedClass(undefined);
export const TRUE: Value = new BooleanClass(true);
export const FALSE: Value = new BooleanClass(false);

export const text = (value: string): TextValue => new TextClass(value);
export const integer = (value: number): IntegerValue => new IntegerClass(value);
export const float = (value: number): FloatValue => new FloatClass(value);
export const boolean = (value: boolean): Value => (value ? TRUE : FALSE);
export const list = (value: readonly Value[]): ListValue => new ListClass(value);
export const tuple = (value: readonly Value[]): TupleValue => new TupleClass(value);
export const generator = (value: readonly Value[]): GeneratorValue => new Generator(value);
export const safeText = (value: string): TextValue => new SafeText(value);
export const dict = (value: ReadonlyMap<Key, Value>): DictValue => new DictClass(value);
export const callable = (value: Callable): FunctionValue => new FunctionClass(value);

/** An integer by its digits, exact whatever its size. */
export function integerOf(digits: string): Value {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? new IntegerClass(value + 0) : new LongInteger(BigInt(digits).toString());
}

export const isText = (value: Value): value is TextValue => value.type === 'StringValue';
export const isInteger = (value: Value): value is IntegerValue => value.type === 'IntegerValue';
export const isFloat = (value: Value): value is FloatValue => value.type === 'FloatValue';
export const isBoolean = (value: Value): value is BooleanValue => value.type === 'BooleanValue';
export const isNone = (value: Value): value is NoneValue => value.type === 'NullValue';
export const isUndefined = (value: Value): value is UndefinedValue => value.type === 'UndefinedValue';
export const isTuple = (value: Value): value is TupleValue => value.type === 'TupleValue';
/** Lists and tuples. */
export const isList = (value: Value): value is ListValue | TupleValue => value.type === 'ArrayValue' || value.type === 'TupleValue';
export const isGenerator = (value: Value): value is GeneratorValue => value.type === 'GeneratorValue';
export const isSafe = (value: TextValue): boolean => value instanceof SafeText;
export const isLoop = (value: Value): value is LoopValue => value.type === 'LoopValue';
export const isDict = (value: Value): value is DictValue => value.type === 'ObjectValue';
export const isNamespace = (value: Value): value is NamespaceValue => value.type === 'NamespaceValue';
export const isKeywords = (value: Value | undefined): value is KeywordsValue => value?.type === 'KeywordArgumentsValue';
export const isFunction = (value: Value): value is FunctionValue => value.type === 'FunctionValue';
/** Python's booleans are integers. */
export const isNumber = (value: Value): value is IntegerValue | FloatValue | BooleanValue =>
  isInteger(value) || isFloat(value) || isBoolean(value);

/** `bool(value)`. The engine's own answer is a new value each time. */
export function isTrue(value: Value): boolean {
  switch (value.type) {
    case 'ArrayValue':
    case 'TupleValue':
      return value.value.length > 0;
    case 'ObjectValue':
      return value.value.size > 0;
    case 'GeneratorValue':
      return true;
    default:
      return Boolean(value.value);
  }
}

/** Digits of an integer as Python writes it. */
export const digitsOf = (value: IntegerValue): string => (value instanceof LongInteger ? value.digits : String(value.value));

/** What Python calls the type in its errors. */
export function typeName(value: Value): string {
  return TYPE_NAMES[value.type] ?? value.type;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  StringValue: 'str',
  IntegerValue: 'int',
  FloatValue: 'float',
  BooleanValue: 'bool',
  NullValue: 'NoneType',
  UndefinedValue: 'Undefined',
  ArrayValue: 'list',
  TupleValue: 'tuple',
  GeneratorValue: 'generator',
  ObjectValue: 'dict',
  NamespaceValue: 'Namespace',
  FunctionValue: 'function',
  LoopValue: 'LoopContext',
};

/** A dict's key for a value; Python's own rule is that it can be hashed. */
export function keyOf(value: Value): Key {
  if (isText(value)) return value.value;
  if (isNumber(value)) return Number(value.value);
  throw new TypeError(`a dict's key cannot be of type '${typeName(value)}'`);
}

export const fromKey = (key: Key): Value => (typeof key === 'string' ? text(key) : Number.isInteger(key) ? integer(key) : float(key));
