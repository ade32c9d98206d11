import { attributeOf, itemOf } from './attributes.ts';
import { type Environment, Interpreter } from './engine.ts';
import { type FilterArguments, filterNamed } from './filters.ts';
import { Leave, type LoopRun, runLoop } from './loop.ts';
import { describe, type Node, nodeOf, type Statement } from './nodes.ts';
import { operate } from './operators.ts';
import { toText } from './python-text.ts';
import { testNamed } from './tests.ts';
import { boolean, dict, isNone, isUndefined, keyOf, text, tuple, UNDEFINED, type Value } from './values.ts';

/**
 * The engine's interpreter with Python's answers: what values print as, operators, attributes, filters, tests, and the scope of loops.
 * Macros, assignments, calls and the rest stay the engine's own.
 */
export class PythonInterpreter extends Interpreter {
  override evaluate(statement: Statement | undefined, scope: Environment): Value {
    if (statement === undefined) return UNDEFINED;
    const node = nodeOf(statement);
    switch (node.type) {
      case 'Output':
        return text(toText(this.evaluate(node.expression, scope)));
      case 'Program':
        return text(this.block(node.body, scope));
      case 'If':
        return text(this.block(this.evaluate(node.test, scope).__bool__().value ? node.body : node.alternate, scope));
      case 'For':
        return text(runLoop(node, scope, this.loopRun));
      case 'Break':
      case 'Continue':
        throw new Leave(node.type);
      case 'Identifier':
        return lookUp(node.value, scope);
      case 'MemberExpression':
        return this.member(node, statement, scope);
      case 'BinaryExpression':
        return this.binary(node, scope);
      case 'FilterExpression':
        return this.filter(this.evaluate(node.operand, scope), node.filter, scope);
      case 'FilterStatement':
        return this.filter(text(this.block(node.body, scope)), node.filter, scope);
      case 'TestExpression':
        return boolean(testNamed(node.test.value)(this.evaluate(node.operand, scope), UNDEFINED) !== node.negate);
      case 'TupleLiteral':
        return tuple(node.value.map((item) => this.evaluate(item, scope)));
      case 'ObjectLiteral':
        return dict(new Map(Array.from(node.value, ([key, value]) => [keyOf(this.evaluate(key, scope)), this.evaluate(value, scope)])));
      case 'CallExpression':
        return this.call(node, statement, scope);
      default:
        return super.evaluate(statement, scope);
    }
  }

  private readonly loopRun: LoopRun = {
    evaluate: (statement, scope) => this.evaluate(statement, scope),
    block: (statements, scope) => this.block(statements, scope),
  };

  /** The text of statements in turn. What was said before a `break` or `continue` goes along with it. */
  private block(statements: readonly Statement[], scope: Environment): string {
    let said = '';
    try {
      for (const statement of statements) {
        const value = this.evaluate(statement, scope);
        if (!isNone(value) && !isUndefined(value)) said += value.value;
      }
    } catch (error) {
      if (error instanceof Leave) error.said = said + error.said;
      throw error;
    }
    return said;
  }

  private member({ object, property, computed }: Node & { type: 'MemberExpression' }, statement: Statement, scope: Environment): Value {
    if (computed && nodeOf(property).type === 'SliceExpression') return super.evaluate(statement, scope);
    const value = this.evaluate(object, scope);
    if (isUndefined(value)) throw new TypeError(`'${describe(object)}' is undefined`);
    if (computed) return itemOf(value, this.evaluate(property, scope));
    const name = nodeOf(property);
    return name.type === 'Identifier' ? attributeOf(value, name.value) : itemOf(value, this.evaluate(property, scope));
  }

  private binary({ operator, left, right }: Node & { type: 'BinaryExpression' }, scope: Environment): Value {
    const first = this.evaluate(left, scope);
    if (operator.value === 'and') return first.__bool__().value ? this.evaluate(right, scope) : first;
    if (operator.value === 'or') return first.__bool__().value ? first : this.evaluate(right, scope);
    return operate(operator.value, first, this.evaluate(right, scope));
  }

  private call({ callee }: Node & { type: 'CallExpression' }, statement: Statement, scope: Environment): Value {
    const name = nodeOf(callee);
    if (name.type === 'Identifier' && isUndefined(lookUp(name.value, scope))) throw new TypeError(`'${name.value}' is undefined`);
    return super.evaluate(statement, scope);
  }

  private filter(value: Value, filter: Statement, scope: Environment): Value {
    const node = nodeOf(filter);
    if (node.type === 'Identifier') return filterNamed(node.value)(value, NOTHING_GIVEN);
    if (node.type !== 'CallExpression') throw new SyntaxError('a filter is named by a word');
    return filterNamed(describe(node.callee))(value, this.filterArguments(node.args, scope));
  }

  private filterArguments(args: readonly Statement[], scope: Environment): FilterArguments {
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

function lookUp(name: string, innermost: Environment): Value {
  for (let scope: Environment | undefined = innermost; scope !== undefined; scope = scope.parent) {
    const value = scope.variables.get(name);
    if (value !== undefined) return value;
  }
  return UNDEFINED;
}
