import { attributeOf, itemOf } from './attributes.ts';
import { Interpreter, type Scope } from './engine.ts';
import { type FilterArguments, filterNamed } from './filters.ts';
import { Leave, type LoopRun, runLoop } from './loop.ts';
import { describe, type Node, nodeOf, type Statement } from './nodes.ts';
import { operate } from './operators.ts';
import { toText } from './python-text.ts';
import { testNamed } from './tests.ts';
import { boolean, dict, integer, isNone, isTrue, isUndefined, keyOf, text, tuple, UNDEFINED, type Value } from './values.ts';

/**
 * About five seconds, in which the process does nothing else. Some templates look through all messages at each message: thousands of them, or a
 * template that never ends, would stop everything. Counted, not timed, so that the same conversation is always refused or never.
 */
const MOST_ROUNDS = 5_000_000;

/**
 * The engine's interpreter with Python's answers: what values print as, operators, attributes, filters, tests, and the scope of loops.
 * Macros, assignments, calls and the rest stay the engine's own.
 */
export class PythonInterpreter extends Interpreter {
  private rounds = 0;

  override evaluate(statement: Statement | undefined, scope: Scope): Value {
    if (statement === undefined) return UNDEFINED;
    const node = nodeOf(statement);
    switch (node.type) {
      case 'Identifier':
        return lookUp(node.value, scope);
      case 'MemberExpression':
        return this.member(node, statement, scope);
      case 'StringLiteral':
        return node.made ?? text(node.value);
      case 'IntegerLiteral':
        return node.made ?? integer(node.value);
      case 'BinaryExpression':
        return this.binary(node, scope);
      case 'UnaryExpression':
        if (node.operator.value !== 'not') return super.evaluate(statement, scope);
        return boolean(!isTrue(this.evaluate(node.argument, scope)));
      case 'Ternary':
        return this.evaluate(isTrue(this.evaluate(node.condition, scope)) ? node.trueExpr : node.falseExpr, scope);
      case 'SelectExpression':
        return isTrue(this.evaluate(node.test, scope)) ? this.evaluate(node.lhs, scope) : UNDEFINED;
      case 'TestExpression':
        return boolean(testNamed(node.test.value)(this.evaluate(node.operand, scope), UNDEFINED) !== node.negate);
      case 'CallExpression':
        return this.call(node, statement, scope);
      case 'FilterExpression':
        return this.filter(this.evaluate(node.operand, scope), node.filter, scope);
      case 'FilterStatement':
        return this.filter(text(this.block(node.body, scope)), node.filter, scope);
      case 'TupleLiteral':
        return tuple(node.value.map((item) => this.evaluate(item, scope)));
      case 'ObjectLiteral':
        return dict(new Map(Array.from(node.value, ([key, value]) => [keyOf(this.evaluate(key, scope)), this.evaluate(value, scope)])));
      case 'Program':
        return text(this.block(node.body, scope));
      case 'Output':
      case 'If':
      case 'For':
      case 'Break':
      case 'Continue':
        return text(this.say(statement, scope));
      default:
        return super.evaluate(statement, scope);
    }
  }

  private readonly loopRun: LoopRun = {
    evaluate: (statement, scope) => this.evaluate(statement, scope),
    block: (statements, scope) => this.block(statements, scope),
    countRound: () => {
      if (++this.rounds > MOST_ROUNDS) throw new RangeError(`its loops have more than ${MOST_ROUNDS} rounds`);
    },
  };

  /** The text of statements in turn. What was said before a `break` or `continue` goes along with it. */
  private block(statements: readonly Statement[], scope: Scope): string {
    let said = '';
    try {
      for (const statement of statements) said += this.say(statement, scope);
    } catch (error) {
      if (error instanceof Leave) error.said = said + error.said;
      throw error;
    }
    return said;
  }

  /** The text of one statement. */
  private say(statement: Statement, scope: Scope): string {
    const node = nodeOf(statement);
    switch (node.type) {
      case 'Output':
        return toText(this.evaluate(node.expression, scope));
      case 'If':
        return this.block(isTrue(this.evaluate(node.test, scope)) ? node.body : node.alternate, scope);
      case 'For':
        return runLoop(node, scope, this.loopRun);
      case 'Break':
      case 'Continue':
        throw new Leave(node.type);
      default: {
        const value = this.evaluate(statement, scope);
        return isNone(value) ? '' : toText(value);
      }
    }
  }

  private member({ object, property, computed }: Node & { type: 'MemberExpression' }, statement: Statement, scope: Scope): Value {
    if (computed && nodeOf(property).type === 'SliceExpression') return super.evaluate(statement, scope);
    const value = this.evaluate(object, scope);
    if (isUndefined(value)) throw new TypeError(`'${describe(object)}' is undefined`);
    if (computed) return itemOf(value, this.evaluate(property, scope));
    const name = nodeOf(property);
    return name.type === 'Identifier' ? attributeOf(value, name.value) : itemOf(value, this.evaluate(property, scope));
  }

  private binary({ operator, left, right }: Node & { type: 'BinaryExpression' }, scope: Scope): Value {
    const first = this.evaluate(left, scope);
    if (operator.value === 'and') return isTrue(first) ? this.evaluate(right, scope) : first;
    if (operator.value === 'or') return isTrue(first) ? first : this.evaluate(right, scope);
    return operate(operator.value, first, this.evaluate(right, scope));
  }

  private call({ callee }: Node & { type: 'CallExpression' }, statement: Statement, scope: Scope): Value {
    const name = nodeOf(callee);
    if (name.type === 'Identifier' && isUndefined(lookUp(name.value, scope))) throw new TypeError(`'${name.value}' is undefined`);
    return super.evaluate(statement, scope);
  }

  private filter(value: Value, filter: Statement, scope: Scope): Value {
    const node = nodeOf(filter);
    if (node.type === 'Identifier') return filterNamed(node.value)(value, NOTHING_GIVEN);
    if (node.type !== 'CallExpression') throw new SyntaxError('a filter is named by a word');
    return filterNamed(describe(node.callee))(value, this.filterArguments(node.args, scope));
  }

  private filterArguments(args: readonly Statement[], scope: Scope): FilterArguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const argument of args) {
      const node = nodeOf(argument);
      if (node.type === 'KeywordArgumentExpression') named.set(node.key.value, this.evaluate(node.value, scope));
      else positional.push(this.evaluate(argument, scope));
    }
    return { positional, named };
  }
}

const NOTHING_GIVEN: FilterArguments = { positional: [], named: new Map() };

function lookUp(name: string, innermost: Scope): Value {
  for (let scope: Scope | undefined = innermost; scope !== undefined; scope = scope.parent) {
    const value = scope.variables.get(name);
    if (value !== undefined) return value;
  }
  return UNDEFINED;
}
