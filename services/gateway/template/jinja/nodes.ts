import type { Statement, Value } from './engine.ts';

export type { Statement } from './engine.ts';

/** The parts that Python reads differently from the engine, and what they hold. `Output` is ours: an expression whose value is printed. */
export type Node =
  | { readonly type: 'Output'; readonly expression: Statement }
  | { readonly type: 'Program'; readonly body: readonly Statement[] }
  | { readonly type: 'If'; readonly test: Statement; readonly body: readonly Statement[]; readonly alternate: readonly Statement[] }
  | ForNode
  | { readonly type: 'Break' | 'Continue' }
  | { readonly type: 'Identifier'; readonly value: string }
  | { readonly type: 'MemberExpression'; readonly object: Statement; readonly property: Statement; readonly computed: boolean }
  | { readonly type: 'CallExpression'; readonly callee: Statement; readonly args: readonly Statement[] }
  | {
      readonly type: 'BinaryExpression';
      readonly operator: { readonly value: string };
      readonly left: Statement;
      readonly right: Statement;
    }
  | { readonly type: 'UnaryExpression'; readonly operator: { readonly value: string }; readonly argument: Statement }
  | { readonly type: 'Ternary'; readonly condition: Statement; readonly trueExpr: Statement; readonly falseExpr: Statement }
  | { readonly type: 'FilterExpression'; readonly operand: Statement; readonly filter: Statement }
  | { readonly type: 'FilterStatement'; readonly filter: Statement; readonly body: readonly Statement[] }
  | { readonly type: 'TestExpression'; readonly operand: Statement; readonly negate: boolean; readonly test: { readonly value: string } }
  | { readonly type: 'ObjectLiteral'; readonly value: ReadonlyMap<Statement, Statement> }
  | { readonly type: 'TupleLiteral'; readonly value: readonly Statement[] }
  | { readonly type: 'SelectExpression'; readonly lhs: Statement; readonly test: Statement }
  | { readonly type: 'KeywordArgumentExpression'; readonly key: { readonly value: string }; readonly value: Statement }
  | { readonly type: 'StringLiteral'; readonly value: string; made?: Value }
  | { readonly type: 'IntegerLiteral'; readonly value: number; made?: Value }
  | { readonly type: 'SliceExpression' };

export type ForNode = {
  readonly type: 'For';
  readonly loopvar: Statement;
  readonly iterable: Statement;
  readonly body: readonly Statement[];
  readonly defaultBlock: readonly Statement[];
  /** Whether the body speaks of `loop`; found out when the template is read. */
  usesLoop?: boolean;
};

/** The engine exports the parts' base class only; `type` says which one it is. */
export const nodeOf = (statement: Statement): Node => statement as Node;

/** How a template names a part, for error messages. */
export function describe(statement: Statement): string {
  const node = nodeOf(statement);
  if (node.type === 'Identifier' || node.type === 'StringLiteral') return node.value;
  if (node.type !== 'MemberExpression') return 'a value';
  return node.computed ? `${describe(node.object)}[…]` : `${describe(node.object)}.${describe(node.property)}`;
}
