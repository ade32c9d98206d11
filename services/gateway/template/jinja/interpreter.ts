import type { If, Scope, Test, Unary, Value } from './engine.ts';
import { type Arguments, type Binary, type Call, type For, Interpreter, type Member, type Name, type Part } from './engine.ts';
import { ARGUMENT_NAMES, FILTERS, testNamed } from './filters.ts';
import { attributeOf, itemOf, loopAt } from './members.ts';
import { operate } from './operators.ts';
import { toText } from './python-text.ts';
import { boolean, dict, isTrue, isUndefined, itemsOf, keyOf, text, UNDEFINED } from './values.ts';

/** The engine's interpreter with Python's answers where they differ; all else is the engine's own. */
export class PythonInterpreter extends Interpreter {
  override evaluate(part: Part | undefined, scope: Scope): Value {
    switch (part?.type) {
      case 'StringLiteral':
      case 'IntegerLiteral':
        part.made ??= super.evaluate(part, scope); // the engine's values are dear to make
        return part.made;
      case 'ObjectLiteral':
        return dict(new Map(Array.from(part.value, ([key, value]) => [keyOf(this.evaluate(key, scope)), this.evaluate(value, scope)])));
      case 'Known':
        return part.value;
      case 'Break':
        throw new Break();
      case 'Continue':
        throw new Continue();
      default:
        return super.evaluate(part, scope);
    }
  }

  /** Prints None and undefined values as Python does. What was said before a `break` or `continue` goes along with it. */
  override evaluateBlock(parts: readonly Part[], scope: Scope): Value {
    let said = '';
    try {
      for (const part of parts) {
        const value = this.evaluate(part, scope);
        if (!SILENT.has(part.type)) said += toText(value);
      }
    } catch (error) {
      if (error instanceof Leave) error.said = said + error.said;
      throw error;
    }
    return said === '' ? NOTHING : text(said);
  }

  override evaluateIf({ test, body, alternate }: If, scope: Scope): Value {
    return this.evaluateBlock(isTrue(this.evaluate(test, scope)) ? body : alternate, scope);
  }

  override evaluateIdentifier({ value: name }: Name, innermost: Scope): Value {
    for (let scope: Scope | undefined = innermost; scope !== undefined; scope = scope.parent) {
      const value = scope.variables.get(name);
      if (value !== undefined) return value;
    }
    return UNDEFINED;
  }

  override evaluateMemberExpression({ object, property, computed }: Member, scope: Scope): Value {
    const value = this.evaluate(object, scope);
    if (isUndefined(value)) throw new TypeError(`'${describe(object)}' is undefined`);
    if (!computed && property.type === 'Identifier') return attributeOf(value, property.value);
    if (property.type === 'SliceExpression') return this.evaluateSliceExpression(value, property, scope);
    return itemOf(value, this.evaluate(property, scope));
  }

  override evaluateUnaryExpression({ operator, argument }: Unary, scope: Scope): Value {
    const value = this.evaluate(argument, scope);
    if (operator.value === 'not') return boolean(!isTrue(value));
    return super.evaluateUnaryExpression({ operator, argument: { type: 'Known', value } }, scope);
  }

  override evaluateBinaryExpression({ operator, left, right }: Binary, scope: Scope): Value {
    const first = this.evaluate(left, scope);
    if (operator.value === 'and') return isTrue(first) ? this.evaluate(right, scope) : first;
    if (operator.value === 'or') return isTrue(first) ? first : this.evaluate(right, scope);
    const second = this.evaluate(right, scope);
    const ours = operate(operator.value, first, second);
    if (ours !== undefined) return ours;
    return super.evaluateBinaryExpression(
      { operator, left: { type: 'Known', value: first }, right: { type: 'Known', value: second } },
      scope,
    );
  }

  override evaluateTestExpression({ operand, negate, test }: Test, scope: Scope): Value {
    return boolean(testNamed(test.value)(this.evaluate(operand, scope), UNDEFINED) !== negate);
  }

  override applyFilter(value: Value, filter: Name | Call, scope: Scope): Value {
    const ours = FILTERS.get(filter.type === 'Identifier' ? filter.value : filter.callee.value);
    if (ours === undefined) return super.applyFilter(value, filter, scope);
    const given: Arguments = filter.type === 'Identifier' ? [[], new Map()] : this.evaluateArguments(filter.args, scope);
    const unknown = [...given[1].keys()].find((name) => !ARGUMENT_NAMES.has(name));
    if (unknown !== undefined) throw new TypeError(`the argument "${unknown}" of a filter is not known here`);
    return ours(value, given, (item, name) => this.applyFilter(item, { type: 'Identifier', value: name }, scope));
  }

  /** Each round has a scope of its own: what it sets is gone in the next. */
  override evaluateFor({ loopvar, iterable, body, defaultBlock }: For, scope: Scope): Value {
    const items = this.loopItems(iterable, loopvar, scope);
    if (items.length === 0) return this.evaluateBlock(defaultBlock, scope);
    let said = '';
    for (const [index, item] of items.entries()) {
      const round = innerScope(scope);
      bind(loopvar, item, round);
      round.setVariable('loop', loopAt(items, index));
      try {
        said += toText(this.evaluateBlock(body, round));
      } catch (error) {
        if (!(error instanceof Leave)) throw error;
        said += error.said;
        if (error instanceof Break) break;
      }
    }
    return text(said);
  }

  /** `for x in items if test` leaves items out before they are counted. */
  private loopItems(iterable: Part, loopvar: Part, scope: Scope): readonly Value[] {
    if (iterable.type !== 'SelectExpression') return itemsOf(this.evaluate(iterable, scope));
    return itemsOf(this.evaluate(iterable.lhs, scope)).filter((item) => {
      const round = innerScope(scope);
      bind(loopvar, item, round);
      return isTrue(this.evaluate(iterable.test, round));
    });
  }
}

/** Parts whose value is not printed. */
const SILENT: ReadonlySet<string> = new Set(['Set', 'Macro', 'Comment']);
const NOTHING = text('');

/** `break` or `continue` on its way out of a loop's body, with what the body had said until then. */
class Leave {
  said = '';
}
class Break extends Leave {}
class Continue extends Leave {}

/** A scope that has nothing of its own yet; the engine's own makes a function for each. */
export function innerScope(parent: Scope): Scope {
  const variables = new Map<string, Value>();
  return { variables, parent, setVariable: (name, value) => variables.set(name, value) && value };
}

function bind(loopvar: Part, item: Value, round: Scope): void {
  if (loopvar.type === 'Identifier') round.setVariable(loopvar.value, item);
  if (loopvar.type !== 'TupleLiteral') return;
  const parts = itemsOf(item);
  if (parts.length !== loopvar.value.length) throw new TypeError(`cannot unpack ${parts.length} values into ${loopvar.value.length} names`);
  for (const [index, name] of loopvar.value.entries()) bind(name, parts[index] ?? UNDEFINED, round);
}

/** How a template names a part, for error messages. */
function describe(part: Part): string {
  if (part.type === 'Identifier') return part.value;
  return part.type === 'MemberExpression' && !part.computed ? `${describe(part.object)}.${describe(part.property)}` : 'a value';
}
