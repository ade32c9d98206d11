import type { LoopValue, Scope } from './engine.ts';
import { itemsOf } from './iterate.ts';
import { type ForNode, nodeOf, type Statement } from './nodes.ts';
import { isTrue, UNDEFINED, type Value } from './values.ts';

/** `break` or `continue` on its way out of a loop's body, with what the body had said until then. */
export class Leave {
  readonly kind: 'Break' | 'Continue';
  said = '';

  constructor(kind: 'Break' | 'Continue') {
    this.kind = kind;
  }
}

/** A scope that has nothing of its own yet; the engine's own makes a function for each. */
export class InnerScope implements Scope {
  readonly variables = new Map<string, Value>();
  readonly parent: Scope | undefined;

  constructor(parent?: Scope) {
    this.parent = parent;
  }

  setVariable(name: string, value: Value): Value {
    this.variables.set(name, value);
    return value;
  }
}

class Loop {
  readonly type = 'LoopValue';
  readonly value: LoopValue['value'];

  constructor(items: readonly Value[], index: number) {
    this.value = { items, index };
  }
}

/** What a loop needs of its interpreter. */
export type LoopRun = {
  evaluate(statement: Statement, scope: Scope): Value;
  block(statements: readonly Statement[], scope: Scope): string;
  /** To be told of each round. @throws RangeError when a template never ends */
  countRound(): void;
};

/** A `for` loop's text. Each round has a scope of its own: what it sets is gone in the next. */
export function runLoop({ loopvar, iterable, body, defaultBlock, usesLoop }: ForNode, scope: Scope, run: LoopRun): string {
  const items = loopItems(iterable, loopvar, scope, run);
  if (items.length === 0) return run.block(defaultBlock, scope);
  let said = '';
  for (const [index, item] of items.entries()) {
    run.countRound();
    const round = new InnerScope(scope);
    bind(loopvar, item, round);
    if (usesLoop !== false) round.setVariable('loop', new Loop(items, index));
    try {
      said += run.block(body, round);
    } catch (error) {
      if (!(error instanceof Leave)) throw error;
      said += error.said;
      if (error.kind === 'Break') break;
    }
  }
  return said;
}

/** `for x in items if test` leaves items out before they are counted. */
function loopItems(iterable: Statement, loopvar: Statement, scope: Scope, run: LoopRun): readonly Value[] {
  const node = nodeOf(iterable);
  if (node.type !== 'SelectExpression') return itemsOf(run.evaluate(iterable, scope));
  return itemsOf(run.evaluate(node.lhs, scope)).filter((item) => {
    run.countRound();
    const round = new InnerScope(scope);
    bind(loopvar, item, round);
    return isTrue(run.evaluate(node.test, round));
  });
}

function bind(loopvar: Statement, item: Value, round: Scope): void {
  const node = nodeOf(loopvar);
  if (node.type === 'Identifier') round.setVariable(node.value, item);
  else if (node.type === 'TupleLiteral') {
    const parts = itemsOf(item);
    if (parts.length !== node.value.length) throw new TypeError(`cannot unpack ${parts.length} values into ${node.value.length} names`);
    for (const [index, name] of node.value.entries()) bind(name, parts[index] ?? UNDEFINED, round);
  } else throw new SyntaxError('a loop assigns to names');
}
