import * as jinja from '@huggingface/jinja';

/**
 * What is used of the engine, in types of ours: the package's own declarations import one another without file endings, which Node's module
 * rules do not resolve. The interpreter's inner methods are no public part of the package; they hold for the version that is pinned.
 */

/** Any value inside a template. */
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
/** `loop` inside a loop: where it is among its items. Of our own making. */
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

/** A part of a parsed template. Only those are told apart that Python reads differently from the engine; `Known` is ours: a value as it is. */
export type Part =
  | { readonly type: 'Break' | 'Continue' | 'SliceExpression' }
  | Name
  | Call
  | Member
  | Typed<'TupleLiteral', readonly Part[]>
  | Typed<'ObjectLiteral', ReadonlyMap<Part, Part>>
  | Typed<'Known', Value>
  | (Typed<'StringLiteral' | 'IntegerLiteral', unknown> & { made?: Value })
  | { readonly type: 'SelectExpression'; readonly lhs: Part; readonly test: Part };

export type Name = Typed<'Identifier', string>;
export type Call = { readonly type: 'CallExpression'; readonly callee: Name; readonly args: readonly Part[] };
export type Member = { readonly type: 'MemberExpression'; readonly object: Part; readonly property: Part; readonly computed: boolean };
export type Binary = { readonly operator: { readonly value: string }; readonly left: Part; readonly right: Part };
export type Unary = { readonly operator: { readonly value: string }; readonly argument: Part };
export type If = { readonly test: Part; readonly body: readonly Part[]; readonly alternate: readonly Part[] };
export type Test = { readonly operand: Part; readonly negate: boolean; readonly test: { readonly value: string } };
export type For = {
  readonly loopvar: Part;
  readonly iterable: Part;
  readonly body: readonly Part[];
  readonly defaultBlock: readonly Part[];
};

/** Arguments by position, and by name. */
export type Arguments = readonly [readonly Value[], ReadonlyMap<string, Value>];

type EngineInterpreter = {
  evaluate(part: Part | undefined, scope: Scope): Value;
  evaluateBlock(parts: readonly Part[], scope: Scope): Value;
  evaluateIf(choice: If, scope: Scope): Value;
  evaluateUnaryExpression(unary: Unary, scope: Scope): Value;
  evaluateIdentifier(name: Name, scope: Scope): Value;
  evaluateMemberExpression(member: Member, scope: Scope): Value;
  evaluateSliceExpression(of: Value, slice: Part, scope: Scope): Value;
  evaluateBinaryExpression(binary: Binary, scope: Scope): Value;
  evaluateTestExpression(test: Test, scope: Scope): Value;
  evaluateFor(loop: For, scope: Scope): Value;
  evaluateArguments(args: readonly Part[], scope: Scope): Arguments;
  applyFilter(value: Value, filter: Name | Call, scope: Scope): Value;
};

/** The engine's scope; `set` makes an engine's value of a JavaScript one. */
type EngineScope = Scope & { set(name: string, value: unknown): Value; readonly tests: ReadonlyMap<string, (value: Value) => boolean> };

export const Environment: new () => EngineScope = jinja.Environment;
export const Interpreter = jinja.Interpreter as unknown as new (scope: Scope) => EngineInterpreter;

/** A template's parts, with the white space rules of transformers. Jinja2 reads any end of a line as a line feed. */
export function parseTemplate(source: string): readonly Part[] {
  const program = jinja.parse(jinja.tokenize(source.replace(/\r\n?/g, '\n'), { lstrip_blocks: true, trim_blocks: true }));
  return program.body as unknown as readonly Part[];
}
