import { Environment, parseTemplate, type Scope } from './engine.ts';
import { PythonInterpreter } from './interpreter.ts';
import { InnerScope } from './loop.ts';
import { nodeOf, type Statement } from './nodes.ts';
import { toText } from './python-text.ts';
import { strftime } from './strftime.ts';
import { callable, dict, FALSE, integer, isKeywords, isNumber, list, NONE, TRUE, text, type Value } from './values.ts';

/** A template that was read once and is run with other variables each time. */
export type Program = { run(variables: ReadonlyMap<string, Value>): string };

/** A template's own refusal, by `raise_exception`. */
export class RaisedByTemplate extends Error {
  override readonly name = 'RaisedByTemplate';
}

/** @throws SyntaxError when the source is no template. */
export function readProgram(source: string, nowMs: number): Program {
  const program = parseTemplate(source);
  prepare(program);
  const globals = globalsAt(nowMs);
  return {
    run: (variables) => {
      const scope = new InnerScope(globals);
      for (const [name, value] of variables) scope.setVariable(name, value);
      return toText(new PythonInterpreter(scope).run(program));
    },
  };
}

/** Statements that say nothing of their own; any other statement is an expression whose value is printed. */
const SILENT = new Set(['Set', 'Macro', 'Comment', 'Break', 'Continue', 'If', 'For', 'CallStatement', 'FilterStatement']);

/**
 * Writes into a parsed template what would otherwise be found out at each run: values of literals, and whether a loop's body speaks of `loop`.
 *
 * The parser gives `{{ x }}` and a part of an expression the same shape, and the engine prints nothing for null. Wrapping what is printed
 * tells them apart, so that null can be printed as Python does.
 */
function prepare(part: unknown): void {
  if (Array.isArray(part)) for (const inner of part) prepare(inner);
  else if (part instanceof Map) for (const entry of part) prepare(entry);
  else if (typeof part === 'object' && part !== null && 'type' in part) {
    if (part.type === 'StringLiteral' && 'value' in part) Object.assign(part, { made: text(String(part.value)) });
    if (part.type === 'IntegerLiteral' && 'value' in part) Object.assign(part, { made: integer(Number(part.value)) });
    if (part.type === 'For') Object.assign(part, { usesLoop: speaksOfLoop(part) });
    for (const [name, inner] of Object.entries(part)) {
      prepare(inner);
      if (BLOCKS.has(name) && Array.isArray(inner)) inner.splice(0, inner.length, ...inner.map(asOutput));
    }
  }
}

function speaksOfLoop(part: unknown): boolean {
  if (part instanceof Map) return [...part].some((entry) => entry.some(speaksOfLoop));
  if (typeof part !== 'object' || part === null) return false;
  if ('type' in part && part.type === 'Identifier' && 'value' in part && part.value === 'loop') return true;
  return Object.values(part).some(speaksOfLoop);
}

const BLOCKS = new Set(['body', 'alternate', 'defaultBlock']);

function asOutput(statement: Statement): unknown {
  const { type } = nodeOf(statement);
  return SILENT.has(type) ? statement : { type: 'Output', expression: statement };
}

/** What transformers puts into every template, with the clock stopped at `nowMs`. */
function globalsAt(nowMs: number): Scope {
  const globals: readonly (readonly [string, Value])[] = [
    ['true', TRUE],
    ['True', TRUE],
    ['false', FALSE],
    ['False', FALSE],
    ['none', NONE],
    ['None', NONE],
    ['range', callable((args) => list(range(args)))],
    ['dict', callable(([keywords]) => dict(isKeywords(keywords) ? keywords.value : new Map()))],
    ['strftime_now', callable(([format]) => text(strftime(nowMs, toText(format ?? text('')))))],
    [
      'raise_exception',
      callable(([message]) => {
        throw new RaisedByTemplate(toText(message ?? text('')));
      }),
    ],
  ];
  const scope = new Environment(); // has the engine's own `namespace`
  for (const [name, value] of globals) scope.setVariable(name, value);
  return scope;
}

/** As in the sandbox of Jinja2. */
const LONGEST_RANGE = 100_000;

function range(args: readonly Value[]): Value[] {
  const [first = 0, second, step = 1] = args.map((value) => (isNumber(value) ? Number(value.value) : Number.NaN));
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  const count = Math.ceil((stop - start) / step);
  if (!Number.isFinite(count)) throw new TypeError('range() takes whole numbers');
  if (count > LONGEST_RANGE) throw new RangeError(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${LONGEST_RANGE}).`);
  return Array.from({ length: Math.max(0, count) }, (_, index) => integer(start + index * step));
}
