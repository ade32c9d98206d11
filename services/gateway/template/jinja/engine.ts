import * as jinja from '@huggingface/jinja';

/**
 * What is used of the engine, in types of ours: the package's own declarations import one another without file endings, which Node's module
 * rules do not resolve.
 */

/** Any value inside a template. All but `LoopValue` are the engine's own. */
export type Value =
  | TextValue
  | Typed<'IntegerValue', number | bigint> // a bigint where a double would lose digits
  | Typed<'FloatValue', number>
  | Typed<'BooleanValue', boolean>
  | Typed<'NullValue', null>
  | Typed<'UndefinedValue', undefined>
  | ListValue
  | DictValue
  | Typed<'NamespaceValue', ReadonlyMap<string, Value>>
  | Typed<'FunctionValue', Callable>
  | LoopValue;

type Typed<Type extends string, Content> = { readonly type: Type; readonly value: Content };
type WithMethods = { readonly builtins: ReadonlyMap<string, Value> };
export type TextValue = Typed<'StringValue', string> & WithMethods;
export type ListValue = Typed<'ArrayValue' | 'TupleValue', readonly Value[]>;
export type DictValue = Typed<'ObjectValue', ReadonlyMap<Key, Value>> & WithMethods;
/** `loop` inside a loop: where it is among its items. */
export type LoopValue = Typed<'LoopValue', { readonly items: readonly Value[]; readonly index: number }>;
/** A dict's key: texts, and numbers where a template's own literal has them. */
export type Key = string | number;
export type Callable = (args: readonly Value[]) => Value;

/** Names and their values; what is not found is looked for in the parent. */
export type Scope = {
  readonly variables: Map<string, Value>;
  readonly parent?: Scope | undefined;
  setVariable(name: string, value: Value): Value;
};

/** A part of a parsed template, of those that Python reads differently. `Known` is ours: a value that was found before. */
export type Part =
  | { readonly type: 'Break' | 'Continue' | 'SliceExpression' }
  | Name
  | Call
  | Member
  | Binary
  | For
  | Typed<'TupleLiteral', readonly Part[]>
  | Typed<'ObjectLiteral', ReadonlyMap<Part, Part>>
  | Typed<'Known', Value>
  | (Typed<'StringLiteral' | 'IntegerLiteral', unknown> & { made?: Value })
  | { readonly type: 'If'; readonly test: Part; readonly body: readonly Part[]; readonly alternate: readonly Part[] }
  | { readonly type: 'UnaryExpression'; readonly operator: Word; readonly argument: Part }
  | { readonly type: 'TestExpression'; readonly operand: Part; readonly negate: boolean; readonly test: Word }
  | { readonly type: 'SelectExpression'; readonly lhs: Part; readonly test: Part };

type Word = { readonly value: string };
export type Name = Typed<'Identifier', string>;
export type Call = { readonly type: 'CallExpression'; readonly callee: Name; readonly args: readonly Part[] };
export type Member = { readonly type: 'MemberExpression'; readonly object: Part; readonly property: Part; readonly computed: boolean };
export type Binary = { readonly type: 'BinaryExpression'; readonly operator: Word; readonly left: Part; readonly right: Part };
type Loop = { readonly loopvar: Part; readonly iterable: Part; readonly body: readonly Part[]; readonly defaultBlock: readonly Part[] };
export type For = Loop & { readonly type: 'For' };

/** Arguments by position, and by name. */
export type Arguments = readonly [readonly Value[], ReadonlyMap<string, Value>];

/** All but `evaluate` are no public part of the package: they hold for the version that is pinned. */
type EngineInterpreter = {
  evaluate(part: Part | undefined, scope: Scope): Value;
  evaluateBlock(parts: readonly Part[], scope: Scope): Value;
  evaluateArguments(args: readonly Part[], scope: Scope): Arguments;
  applyFilter(value: Value, filter: Name | Call, scope: Scope): Value;
};
/** `set` makes an engine's value of a JavaScript one. */
type EngineScope = Scope & { set(name: string, value: unknown): Value; readonly tests: ReadonlyMap<string, (value: Value) => boolean> };

export const Environment: new () => EngineScope = jinja.Environment;
export const Interpreter = jinja.Interpreter as unknown as new (scope: Scope) => EngineInterpreter;

/** A template's parts, with the white space rules of transformers. Jinja2 reads any end of a line as a line feed. */
export function parseTemplate(source: string): readonly Part[] {
  const program = jinja.parse(jinja.tokenize(source.replace(/\r\n?/g, '\n'), { lstrip_blocks: true, trim_blocks: true }));
  return program.body as unknown as readonly Part[];
}
