import { itemsOf } from './iterate.ts';
import { toText } from './python-text.ts';
import { LINE_END, strip, words } from './spaces.ts';
import { boolean, integer, isInteger, isKeywords, isList, isNone, isText, list, text, tuple, typeName, type Value } from './values.ts';

type Method = (self: string, args: readonly Value[]) => Value;

/** Methods of Python's `str` that templates use. */
const METHODS: Readonly<Record<string, Method>> = {
  strip: (self, args) => text(strip(self, characters(args))),
  lstrip: (self, args) => text(strip(self, characters(args), 'left')),
  rstrip: (self, args) => text(strip(self, characters(args), 'right')),
  split: (self, args) => list(split(self, args).map(text)),
  rsplit: (self, args) => list(splitFromRight(self, args).map(text)),
  splitlines: (self) => list(lines(self).map(text)),
  partition: (self, args) => tuple(partition(self, textAt(args, 0), self.indexOf(textAt(args, 0))).map(text)),
  rpartition: (self, args) => tuple(partition(self, textAt(args, 0), self.lastIndexOf(textAt(args, 0)), 'right').map(text)),
  startswith: (self, args) => boolean(alternatives(args).some((start) => self.startsWith(start))),
  endswith: (self, args) => boolean(alternatives(args).some((end) => self.endsWith(end))),
  removeprefix: (self, args) => text(self.startsWith(textAt(args, 0)) ? self.slice(textAt(args, 0).length) : self),
  removesuffix: (self, args) => text(self.endsWith(textAt(args, 0)) ? self.slice(0, self.length - textAt(args, 0).length) : self),
  replace: (self, args) => text(replace(self, textAt(args, 0), textAt(args, 1), numberAt(args, 2, 'count'))),
  join: (self, args) =>
    text(
      itemsOf(args[0] ?? text(''))
        .map(mustBeText)
        .join(self),
    ),
  find: (self, args) => integer(characterIndex(self, self.indexOf(textAt(args, 0)))),
  rfind: (self, args) => integer(characterIndex(self, self.lastIndexOf(textAt(args, 0)))),
  count: (self, args) => integer(self.split(textAt(args, 0)).length - 1),
  upper: (self) => text(self.toUpperCase()),
  lower: (self) => text(self.toLowerCase()),
  title: (self) => text(title(self)),
  capitalize: (self) => text(capitalize(self)),
  format: (self, args) => text(format(self, args)),
  isdigit: (self) => boolean(/^\p{Nd}+$/u.test(self)),
  isspace: (self) => boolean(self !== '' && strip(self, null) === ''),
};

/** A method by its name; undefined when Python has none of that name, or no template was seen to use it. */
export function textMethod(name: string): Method | undefined {
  return Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
}

/** `text.replace(from, to, count)`; a negative count is every one. */
export function replace(self: string, from: string, to: string, count: number): string {
  if (count < 0) return from === '' ? [to, ...Array.from(self, (character) => character + to)].join('') : self.split(from).join(to);
  const parts = from === '' ? ['', ...Array.from(self), ''] : self.split(from);
  const done = parts.slice(0, count + 1).join(to);
  return [done, ...parts.slice(count + 1)].join(from);
}

/** Words begin with a capital after anything that is no letter. */
export const title = (self: string): string => self.replace(/\p{L}+/gu, (word) => capitalize(word));

export function capitalize(self: string): string {
  const [first = '', ...rest] = self;
  return first.toUpperCase() + rest.join('').toLowerCase();
}

/** `{}`, `{0}` and `{name}`; anything finer is refused. */
function format(self: string, args: readonly Value[]): string {
  const keywords = args.at(-1);
  let next = 0;
  return self.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (found, name?: string) => {
    if (name === undefined) return found.charAt(0);
    const given =
      name === '' ? args[next++] : /^\d+$/.test(name) ? args[Number(name)] : isKeywords(keywords) ? keywords.value.get(name) : undefined;
    if (given === undefined || isKeywords(given))
      throw new TypeError(`str.format: "${found}" is not known here, or nothing was given for it`);
    return toText(given);
  });
}

function split(self: string, args: readonly Value[]): string[] {
  const limit = numberAt(args, 1, 'maxsplit');
  const separator = separatorOf(args);
  if (separator === null) return words(self, limit);
  const parts = self.split(separator);
  return limit < 0 || parts.length <= limit ? parts : [...parts.slice(0, limit), parts.slice(limit).join(separator)];
}

function splitFromRight(self: string, args: readonly Value[]): string[] {
  const limit = numberAt(args, 1, 'maxsplit');
  const separator = separatorOf(args);
  if (limit < 0) return separator === null ? words(self, limit) : self.split(separator);
  if (separator === null) throw new TypeError('rsplit(None, maxsplit) is not known here');
  const parts = self.split(separator);
  const kept = Math.max(1, parts.length - limit);
  return [parts.slice(0, kept).join(separator), ...parts.slice(kept)];
}

function separatorOf(args: readonly Value[]): string | null {
  const given = args[0];
  if (given === undefined || isKeywords(given) || isNone(given)) return null;
  const separator = mustBeText(given);
  if (separator === '') throw new TypeError('empty separator');
  return separator;
}

function lines(self: string): string[] {
  const found = self.split(LINE_END);
  if (found.at(-1) === '') found.pop();
  return found;
}

function partition(self: string, separator: string, at: number, side: 'left' | 'right' = 'left'): string[] {
  if (at < 0) return side === 'left' ? [self, '', ''] : ['', '', self];
  return [self.slice(0, at), separator, self.slice(at + separator.length)];
}

function alternatives(args: readonly Value[]): string[] {
  const given = args[0];
  return given !== undefined && isList(given) ? given.value.map(mustBeText) : [textAt(args, 0)];
}

const characterIndex = (self: string, at: number): number => (at < 0 ? -1 : Array.from(self.slice(0, at)).length);

function characters(args: readonly Value[]): string | null {
  const given = args[0];
  return given === undefined || isNone(given) ? null : mustBeText(given);
}

function textAt(args: readonly Value[], index: number): string {
  const given = args[index];
  if (given === undefined) throw new TypeError('a method of str lacks an argument');
  return mustBeText(given);
}

/** A number by position or name; -1 when it is not given. */
function numberAt(args: readonly Value[], index: number, name: string): number {
  const last = args.at(-1);
  const given = isKeywords(last) ? last.value.get(name) : args[index];
  if (given === undefined) return -1;
  if (!isInteger(given)) throw new TypeError(`'${typeName(given)}' object cannot be interpreted as an integer`);
  return given.value;
}

function mustBeText(value: Value): string {
  if (!isText(value)) throw new TypeError(`a method of str takes a str here, not '${typeName(value)}'`);
  return value.value;
}
