import { type Binary, type Call, type For, Interpreter, type Member, type Name, type Part, type Scope, type Value } from './engine.ts';
import { applied } from './filters.ts';
import { attributeOf, itemOf } from './members.ts';
import { operate, testNamed } from './operators.ts';
import { toText } from './python-text.ts';
import { boolean, dict, isTrue, isUndefined, itemsOf, keyOf, text, UNDEFINED } from './values.ts';

/**
 * About five seconds, in which the process does nothing else. Some templates look through all messages at each message: thousands of them, or a
 * template that never ends, would stop everything. Counted, not timed, so that the same conversation is always refused or never.
 */
const MOST_ROUNDS = 5_000_000;

/**
 * The engine's interpreter with Python's answers where they differ; all else is the engine's own. docs/tokenizers.md lists every correction
 * and who needs it.
 */
export class PythonInterpreter extends Interpreter {
  private rounds = 0;

  override evaluate(part: Part | undefined, scope: Scope): Value {
    switch (part?.type) {
      case 'Known':
        return part.value;
      case 'Identifier':
        return lookUp(part.value, scope);
      case 'MemberExpression':
        return this.member(part, scope);
      case 'BinaryExpression':
        return this.binary(part, scope);
      case 'UnaryExpression':
        return part.operator.value === 'not' ? boolean(!isTrue(this.evaluate(part.argument, scope))) : super.evaluate(part, scope);
      case 'TestExpression':
        return boolean(testNamed(part.test.value)(this.evaluate(part.operand, scope), UNDEFINED) !== part.negate);
      case 'StringLiteral':
      case 'IntegerLiteral':
        part.made ??= super.evaluate(part, scope); // the engine's values are dear to make
        return part.made;
      case 'ObjectLiteral':
        return this.dict(part.value, scope);
      case 'Break':
        throw new Break();
      case 'Continue':
        throw new Continue();
      default:
        return super.evaluate(part, scope);
    }
  }

  override evaluateBlock(parts: readonly Part[], scope: Scope): Value {
    return text(this.block(parts, scope));
  }

  /** Prints None and undefined values as Python does. What was said before a `break` or `continue` goes along with it. */
  private block(parts: readonly Part[], scope: Scope): string {
    let said = '';
    try {
      for (const part of parts) {
        if (part.type === 'If') said += this.block(isTrue(this.evaluate(part.test, scope)) ? part.body : part.alternate, scope);
        else if (part.type === 'For') said += this.loop(part, scope);
        else if (SILENT.has(part.type)) this.evaluate(part, scope);
        else said += toText(this.evaluate(part, scope));
      }
    } catch (error) {
      if (error instanceof Leave) error.said = said + error.said;
      throw error;
    }
    return said;
  }

  override applyFilter(value: Value, filter: Name | Call, scope: Scope): Value {
    const [name, args] = filter.type === 'Identifier' ? [filter.value, []] : [filter.callee.value, filter.args];
    const apply = (item: Value, by: string) => this.applyFilter(item, { type: 'Identifier', value: by }, scope);
    const ours = applied(name, value, () => this.evaluateArguments(args, scope), apply);
    return ours ?? super.applyFilter(value, filter, scope);
  }

  private member({ object, property, computed }: Member, scope: Scope): Value {
    const value = this.evaluate(object, scope);
    if (isUndefined(value)) throw new TypeError(`'${describe(object)}' is undefined`);
    if (!computed && property.type === 'Identifier') return attributeOf(value, property.value);
    if (property.type !== 'SliceExpression') return itemOf(value, this.evaluate(property, scope));
    return super.evaluate({ type: 'MemberExpression', object: { type: 'Known', value }, property, computed }, scope);
  }

  private dict(entries: ReadonlyMap<Part, Part>, scope: Scope): Value {
    return dict(new Map(Array.from(entries, ([key, value]) => [keyOf(this.evaluate(key, scope)), this.evaluate(value, scope)])));
  }

  private binary({ type, operator, left, right }: Binary, scope: Scope): Value {
    const first = this.evaluate(left, scope);
    if (operator.value === 'and') return isTrue(first) ? this.evaluate(right, scope) : first;
    if (operator.value === 'or') return isTrue(first) ? first : this.evaluate(right, scope);
    const second = this.evaluate(right, scope);
    const ours = operate(operator.value, first, second);
    if (ours !== undefined) return ours;
    return super.evaluate({ type, operator, left: { type: 'Known', value: first }, right: { type: 'Known', value: second } }, scope);
  }

  /** Each round has a scope of its own: what it sets is gone in the next. */
  private loop({ loopvar, iterable, body, defaultBlock }: For, scope: Scope): string {
    const items = this.loopItems(iterable, loopvar, scope);
    if (items.length === 0) return this.block(defaultBlock, scope);
    let said = '';
    for (const [index, item] of items.entries()) {
      const round = this.round(loopvar, item, scope);
      round.setVariable('loop', { type: 'LoopValue', value: { items, index } });
      try {
        said += this.block(body, round);
      } catch (error) {
        if (!(error instanceof Leave)) throw error;
        said += error.said;
        if (error instanceof Break) break;
      }
    }
    return said;
  }

  /** `for x in items if test` leaves items out before they are counted. */
  private loopItems(iterable: Part, loopvar: Part, scope: Scope): readonly Value[] {
    if (iterable.type !== 'SelectExpression') return itemsOf(this.evaluate(iterable, scope));
    const items = itemsOf(this.evaluate(iterable.lhs, scope));
    return items.filter((item) => isTrue(this.evaluate(iterable.test, this.round(loopvar, item, scope))));
  }

  private round(loopvar: Part, item: Value, scope: Scope): Scope {
    if (++this.rounds > MOST_ROUNDS) throw new RangeError(`its loops have more than ${MOST_ROUNDS} rounds`);
    return boundTo(loopvar, item, innerScope(scope));
  }
}

/** Parts whose value is not printed. */
const SILENT: ReadonlySet<string> = new Set(['Set', 'Macro', 'Comment']);

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

function lookUp(name: string, innermost: Scope): Value {
  for (let scope: Scope | undefined = innermost; scope !== undefined; scope = scope.parent) {
    const value = scope.variables.get(name);
    if (value !== undefined) return value;
  }
  return UNDEFINED;
}

function boundTo(loopvar: Part, item: Value, round: Scope): Scope {
  if (loopvar.type === 'Identifier') round.setVariable(loopvar.value, item);
  if (loopvar.type !== 'TupleLiteral') return round;
  const parts = itemsOf(item);
  if (parts.length !== loopvar.value.length) throw new TypeError(`cannot unpack ${parts.length} values into ${loopvar.value.length} names`);
  for (const [index, name] of loopvar.value.entries()) boundTo(name, parts[index] ?? UNDEFINED, round);
  return round;
}

/** How a template names a part, for error messages. */
function describe(part: Part): string {
  if (part.type === 'Identifier') return part.value;
  return part.type === 'MemberExpression' && !part.computed ? `${describe(part.object)}.${describe(part.property)}` : 'a value';
}
