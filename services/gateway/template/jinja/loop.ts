import { Environment } from './engine.ts';
import { itemsOf } from './iterate.ts';
import { type ForNode, nodeOf, type Statement } from './nodes.ts';
import { boolean, callable, dict, integer, type Key, UNDEFINED, type Value } from './values.ts';

/** `break` or `continue` on its way out of a loop's body, with what the body had said until then. */
export class Leave {
  readonly kind: 'Break' | 'Continue';
  said = '';

  constructor(kind: 'Break' | 'Continue') {
    this.kind = kind;
  }
}

/** What a loop needs of its interpreter. */
export type LoopRun = {
  evaluate(statement: Statement, scope: Environment): Value;
  block(statements: readonly Statement[], scope: Environment): string;
};

/** A `for` loop's text. Each round has a scope of its own: what it sets is gone in the next. */
export function runLoop({ loopvar, iterable, body, defaultBlock }: ForNode, scope: Environment, run: LoopRun): string {
  const items = loopItems(iterable, loopvar, scope, run);
  if (items.length === 0) return run.block(defaultBlock, scope);
  let said = '';
  for (const [index, item] of items.entries()) {
    const round = new Environment(scope);
    bind(loopvar, item, round);
    round.setVariable('loop', loopVariable(items, index));
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
function loopItems(iterable: Statement, loopvar: Statement, scope: Environment, run: LoopRun): readonly Value[] {
  const node = nodeOf(iterable);
  if (node.type !== 'SelectExpression') return itemsOf(run.evaluate(iterable, scope));
  return itemsOf(run.evaluate(node.lhs, scope)).filter((item) => {
    const round = new Environment(scope);
    bind(loopvar, item, round);
    return run.evaluate(node.test, round).__bool__().value;
  });
}

function bind(loopvar: Statement, item: Value, round: Environment): void {
  const node = nodeOf(loopvar);
  if (node.type === 'Identifier') round.setVariable(node.value, item);
  else if (node.type === 'TupleLiteral') {
    const parts = itemsOf(item);
    if (parts.length !== node.value.length) throw new TypeError(`cannot unpack ${parts.length} values into ${node.value.length} names`);
    for (const [index, name] of node.value.entries()) bind(name, parts[index] ?? UNDEFINED, round);
  } else throw new SyntaxError('a loop assigns to names');
}

function loopVariable(items: readonly Value[], index: number): Value {
  const { length } = items;
  return dict(
    new Map<Key, Value>([
      ['index', integer(index + 1)],
      ['index0', integer(index)],
      ['revindex', integer(length - index)],
      ['revindex0', integer(length - index - 1)],
      ['first', boolean(index === 0)],
      ['last', boolean(index === length - 1)],
      ['length', integer(length)],
      ['previtem', items[index - 1] ?? UNDEFINED],
      ['nextitem', items[index + 1] ?? UNDEFINED],
      ['cycle', callable((choices) => choices[index % choices.length] ?? UNDEFINED)],
    ]),
  );
}
