import * as jinja from '@huggingface/jinja';

/**
 * What is used of the engine, in types of ours: the package's own declarations import one another without file endings, which Node's module
 * rules do not resolve.
 */

/** Any value inside a template. */
export type Value =
  | TextValue
  | IntegerValue
  | FloatValue
  | BooleanValue
  | NoneValue
  | UndefinedValue
  | ListValue
  | TupleValue
  | GeneratorValue
  | DictValue
  | NamespaceValue
  | KeywordsValue
  | FunctionValue
  | LoopValue;

export type TextValue = Typed<'StringValue', string>;
export type IntegerValue = Typed<'IntegerValue', number>;
export type FloatValue = Typed<'FloatValue', number>;
export type BooleanValue = Typed<'BooleanValue', boolean>;
export type NoneValue = Typed<'NullValue', null>;
export type UndefinedValue = Typed<'UndefinedValue', undefined>;
export type ListValue = Typed<'ArrayValue', readonly Value[]>;
export type TupleValue = Typed<'TupleValue', readonly Value[]>;
/** What `map`, `select` and their like give: it can be gone through, and little else. */
export type GeneratorValue = Typed<'GeneratorValue', readonly Value[]>;
export type DictValue = Typed<'ObjectValue', ReadonlyMap<Key, Value>>;
export type NamespaceValue = Typed<'NamespaceValue', ReadonlyMap<Key, Value>>;
/** The keyword arguments of a call: its last argument when there are any. */
export type KeywordsValue = Typed<'KeywordArgumentsValue', ReadonlyMap<Key, Value>>;
export type FunctionValue = Typed<'FunctionValue', Callable>;

/** `loop` inside a loop: where it is among its items. */
export type LoopValue = Typed<'LoopValue', { readonly items: readonly Value[]; readonly index: number }>;

type Typed<Type extends string, Content> = { readonly type: Type; readonly value: Content };

/** A dict's key: texts, and numbers where a template's own literal has them. */
export type Key = string | number;
export type Callable = (args: readonly Value[], scope: Scope) => Value;

/** Names and their values; what is not found is looked for in the parent. */
export type Scope = {
  readonly variables: Map<string, Value>;
  readonly parent?: Scope | undefined;
  setVariable(name: string, value: Value): Value;
};

/** The engine's scope; `set` makes an engine's value of a JavaScript one. */
export type Environment = Scope & { set(name: string, value: unknown): Value };

/** A part of a parsed template; `type` says which. */
export type Statement = { readonly type: string };

type Evaluator = {
  run(program: Statement): Value;
  evaluate(statement: Statement | undefined, scope: Scope): Value;
};

export const Environment: new () => Environment = jinja.Environment;
export const Interpreter: new (scope: Scope) => Evaluator = jinja.Interpreter;

/** A template's parts, with the white space rules of transformers. Jinja2 reads any end of a line as a line feed. */
export function parseTemplate(source: string): Statement {
  return jinja.parse(jinja.tokenize(source.replace(/\r\n?/g, '\n'), { lstrip_blocks: true, trim_blocks: true }));
}
