import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { parseRunConfig, startProblems, UNBUILT } from '../core/config/index.ts';
import { sections } from '../core/config/schema.ts';

/** The reference of the run config against its schema: every key with its values and its default, and nothing else. */

const PAGE = readFileSync(join(import.meta.dirname, 'config.md'), 'utf8');

/** The part of the page below the heading that ends so, up to the next heading. */
function partOf(headingEnd: string): string {
  const part = PAGE.split(/^#+ /m).find((text) => text.slice(0, text.indexOf('\n')).endsWith(headingEnd));
  if (part === undefined) throw new Error(`docs/config.md has no heading that ends with ${headingEnd}`);
  return part;
}

type Row = { readonly value: string; readonly fallback: string; readonly text: string };

/** Key, value, default and meaning of every table row that begins with a key. */
function rowsOf(text: string): Record<string, Row> {
  const cells = [...text.matchAll(/^\| `(\w+)` *\|(.*)\|$/gm)].map(([, key = '', rest = '']) =>
    [key, ...rest.split('|')].map((it) => it.trim()),
  );
  return Object.fromEntries(cells.map(([key, value = '', fallback = '', meaning = '']) => [key, { value, fallback, text: meaning }]));
}

type Json = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Json[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
};

const NAMES: Record<string, string> = {
  integer: 'whole number',
  number: 'number',
  string: 'text',
  boolean: 'true or false',
  array: 'list of texts',
  object: 'table',
};

/** What the page must say of a key's values: `whole number ≥ 1, ≤ 64`. */
function valueText(schema: Json): string {
  if (schema.anyOf?.[0]) return valueText(schema.anyOf[0]);
  if (schema.enum) return schema.enum.map((choice) => `\`"${choice}"\``).join(', ');
  const type = [schema.type].flat()[0] ?? '';
  const { minimum, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER, exclusiveMaximum, minLength } = schema;
  const bounds = [
    minimum === undefined ? '' : `≥ ${minimum}`,
    exclusiveMinimum === undefined ? '' : `> ${exclusiveMinimum}`,
    maximum === Number.MAX_SAFE_INTEGER ? '' : `≤ ${maximum}`,
    exclusiveMaximum === undefined ? '' : `< ${exclusiveMaximum}`,
  ].filter((bound) => bound !== '');
  return `${NAMES[type]}${bounds.length > 0 ? ` ${bounds.join(', ')}` : ''}${minLength === 1 ? ', not empty' : ''}`;
}

function defaultText(schema: Json): string {
  if (!('default' in schema)) return 'required';
  return schema.default === null ? 'none' : `\`${JSON.stringify(schema.default)}\``;
}

it.each(Object.entries(sections))('[%s]: every key, its values and its default', (name, section) => {
  const { properties } = z.toJSONSchema(section, { io: 'input' }) as { properties: Record<string, Json> };
  const rows = rowsOf(partOf(`[${name}]`));
  expect(Object.keys(rows)).toEqual(Object.keys(properties));
  for (const [key, schema] of Object.entries(properties)) {
    expect([key, rows[key]?.value, rows[key]?.fallback]).toEqual([key, valueText(schema), defaultText(schema)]);
    expect(rows[key]?.text).not.toBe('');
  }
});

it('the smallest config on the page is one', () => {
  const example = /```toml\n([^`]*)```/.exec(PAGE)?.[1] ?? '';
  expect(parseRunConfig(example, 'docs/config.md')).toMatchObject({ ok: true });
});

/** What an openai_compat teacher cannot be without. */
const COMPAT = 'teacher.endpoint = "http://localhost"\nteacher.tokenizer = "t"\nteacher.alignment = "chunk"\n';
const NOT_BUILT = [...partOf('Not built yet').matchAll(/^\| `([\w.]+)( = [^`]+)` *\|/gm)].map(([, field = '', value = '']) => ({
  field,
  value,
}));

it.each(NOT_BUILT)('$field$value is refused at start, as the page says', ({ field, value }) => {
  const toml = `student.base_model = "s"\nteacher.model = "t"\nharbor.job_template = "j"\n${field}${value}\n${value.includes('openai') ? COMPAT : ''}`;
  const parsed = parseRunConfig(toml, 'run.toml');
  expect(parsed).toMatchObject({ ok: true });
  expect(parsed.ok && startProblems(parsed.config).map((error) => error.field)).toEqual([field]);
});

it('names all that is not built, and nothing else', () => {
  expect(NOT_BUILT.map(({ field }) => field)).toEqual(UNBUILT.map(({ field }) => field));
});
