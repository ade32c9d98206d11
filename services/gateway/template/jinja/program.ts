import { Environment, parseTemplate, type Scope } from './engine.ts';
import { innerScope, PythonInterpreter } from './interpreter.ts';
import { toText } from './python-text.ts';
import type { Value } from './values.ts';

/** A template that was read once and is run with other variables each time. */
export type Program = { run(variables: ReadonlyMap<string, Value>): string };

/** A template's own refusal, by `raise_exception`. */
export class RaisedByTemplate extends Error {
  override readonly name = 'RaisedByTemplate';
}

/** @throws SyntaxError when the source is no template. */
export function readProgram(source: string, nowMs: number): Program {
  const parts = parseTemplate(source);
  const globals = globalsAt(nowMs);
  return {
    run: (variables) => {
      const scope = innerScope(globals);
      for (const [name, value] of variables) scope.setVariable(name, value);
      return toText(new PythonInterpreter(scope).evaluateBlock(parts, scope));
    },
  };
}

/** As in the sandbox of Jinja2. */
const LONGEST_RANGE = 100_000;

/** What transformers puts into every template, with the clock stopped at `nowMs`. */
function globalsAt(nowMs: number): Scope {
  const scope = new Environment(); // has the engine's own `namespace`
  for (const [name, value] of Object.entries({ true: true, false: false, none: null })) {
    scope.set(name, value);
    scope.set(name.charAt(0).toUpperCase() + name.slice(1), value);
  }
  scope.set('range', (first: number, second?: number, step = 1) => {
    const [start, stop] = second === undefined ? [0, first] : [first, second];
    const length = Math.max(0, Math.ceil((stop - start) / step));
    if (length > LONGEST_RANGE) throw new RangeError(`Range too big. The sandbox blocks ranges larger than MAX_RANGE (${LONGEST_RANGE}).`);
    return Array.from({ length }, (_, index) => start + index * step);
  });
  scope.set('strftime_now', (format: string) => strftime(new Date(nowMs), format));
  scope.set('raise_exception', (message: unknown) => {
    throw new RaisedByTemplate(String(message));
  });
  return scope;
}

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];

/** Python's `strftime`, in UTC and with English names whatever the machine is set to. */
function strftime(date: Date, format: string): string {
  const [Y = '', m = '', d = '', H = '', M = '', S = ''] = date.toISOString().split(/[-T:.]/);
  const B = MONTHS[date.getUTCMonth()] ?? '';
  const known = new Map(Object.entries({ Y, m, d, H, M, S, B, b: B.slice(0, 3) }));
  return format.replace(/%(.?)/gs, (directive, name: string) => {
    const written = known.get(name);
    if (written === undefined) throw new Error(`strftime_now: "${directive}" is not a directive known here`);
    return written;
  });
}
