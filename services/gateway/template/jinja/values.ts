import { type Callable, type DictValue, Environment, type Key, type ListValue, type TextValue, type Value } from './engine.ts';

export type { Value } from './engine.ts';

/** The engine exports no classes of its values, but makes a value of whatever it is given. */
const samples = new Environment();
const classOf = <Content, Made extends Value = Value>(sample: unknown) =>
  samples.set(String(samples.variables.size), sample).constructor as unknown as new (
    value: Content,
  ) => Made;

const TextClass = classOf<string, TextValue>('');
const IntegerClass = classOf<number | bigint>(0);
const FloatClass = classOf<number>(0.5);
const ListClass = classOf<readonly Value[]>([]);
const DictClass = classOf<ReadonlyMap<Key, Value>>({});
const FunctionClass = classOf<Callable>(() => null);

/** A text that `safe` has marked: adding another to it escapes that one for HTML, as Python's Markup does. */
export class SafeText extends TextClass {}

export const NONE: Value = samples.set('none', null);
export const UNDEFINED: Value = samples.set('undefined', undefined);
const TRUE: Value = samples.set('true', true);
const FALSE: Value = samples.set('false', false);

export const text = (value: string): TextValue => new TextClass(value);
export const integer = (value: number | bigint): Value => new IntegerClass(value);
export const float = (value: number): Value => new FloatClass(value);
export const boolean = (value: boolean): Value => (value ? TRUE : FALSE);
export const list = (value: readonly Value[]): Value => new ListClass(value);
export const dict = (value: ReadonlyMap<Key, Value>): Value => new DictClass(value);
export const callable = (value: Callable): Value => new FunctionClass(value);

export const isText = (value: Value): value is TextValue => value.type === 'StringValue';
export const isUndefined = (value: Value): boolean => value.type === 'UndefinedValue';
export const isDict = (value: Value): value is DictValue => value.type === 'ObjectValue';
/** Lists and tuples. */
export const isList = (value: Value): value is ListValue => value.type === 'ArrayValue' || value.type === 'TupleValue';
/** Python's booleans are integers. */
export const isNumber = ({ type }: Value): boolean => type === 'IntegerValue' || type === 'FloatValue' || type === 'BooleanValue';

/** `bool(value)`. The engine's own answer is a new value each time. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.value.length > 0;
  return isDict(value) ? value.value.size > 0 : Boolean(value.value);
}

/** The items that Python's `for` would see: a dict's keys, a text's characters, nothing of an undefined value. */
export function itemsOf(value: Value): readonly Value[] {
  if (isList(value)) return value.value;
  if (isDict(value)) return Array.from(value.value.keys(), fromKey);
  if (isText(value)) return Array.from(value.value, text);
  if (isUndefined(value)) return [];
  throw new TypeError(`${value.type} is not iterable`);
}

/** What a dict has a value's entry under; for all but texts and numbers it is a key that no dict has. */
export const keyOf = (value: Value): Key =>
  isText(value) ? value.value : value.type === 'IntegerValue' ? Number(value.value) : Number.NaN;
export const fromKey = (key: Key): Value => (typeof key === 'string' ? text(key) : integer(key));
