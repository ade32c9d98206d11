import { parse, stringify } from 'smol-toml';
import type { z } from 'zod';
import { documentRules, sectionRules } from './rules.ts';
import { NOT_WHOLE, type RunConfig, type SectionName, sections } from './schema.ts';

export type ConfigErrorKind =
  | 'missing'
  | 'unknown_key'
  | 'out_of_range'
  | 'not_in_choices'
  | 'wrong_type'
  | 'rule'
  | 'toml_syntax'
  | 'not_built';

/** One thing wrong with a config. `field` is the dotted path; a section's own rule has the section, a rule over all `(top level)`. */
export type ConfigError = { readonly field: string; readonly kind: ConfigErrorKind; readonly message: string };

export type ParsedConfig = { readonly ok: true; readonly config: RunConfig } | { readonly ok: false; readonly errors: ConfigError[] };

/**
 * Reads a run config from TOML text. All wrong fields of all sections come back together; a section's rules are looked at once its fields
 * are fine, rules between sections once everything else is. `fileName` starts every message.
 */
export function parseRunConfig(text: string, fileName: string): ParsedConfig {
  const fail = (errors: readonly ConfigError[]): ParsedConfig => ({
    ok: false,
    errors: errors.map((error) => ({ ...error, message: `${fileName}: ${error.message}` })),
  });
  let document: Record<string, unknown>;
  try {
    document = parse(text, { integersAsBigInt: 'asNeeded' });
  } catch (error) {
    return fail([{ field: '(document)', kind: 'toml_syntax', message: `not valid TOML: ${(error as Error).message.trim()}` }]);
  }
  const names = Object.keys(sections) as SectionName[];
  const unknown = Object.keys(document).filter((key) => !Object.hasOwn(sections, key));
  const errors = unknown.map(
    (key): ConfigError => ({ field: key, kind: 'unknown_key', message: `${key} is not a section; known are ${names.join(', ')}` }),
  );
  const parsed: Partial<Record<SectionName, unknown>> = {};
  for (const name of names) {
    const result = parseSection(name, document[name]);
    if (result.ok) parsed[name] = result.section;
    else errors.push(...result.errors);
  }
  if (errors.length > 0) return fail(errors);
  const config = parsed as RunConfig;
  const broken = documentRules(config).filter((rule) => rule !== null);
  if (broken.length > 0) return fail(broken.map((message) => ({ field: '(top level)', kind: 'rule', message })));
  return { ok: true, config };
}

/** The config as TOML that reads back to the same config: every value stated, keys without a value left out. */
export function stringifyRunConfig(config: RunConfig): string {
  const stated = Object.entries(config).map(([name, section]) => [
    name,
    Object.fromEntries(Object.entries(section).filter(([, value]) => value !== null)),
  ]);
  return stringify(Object.fromEntries(stated));
}

/** Every error on its own line, as a person should see it. */
export function describeConfigErrors(errors: readonly ConfigError[]): string {
  return errors.map((error) => error.message).join('\n');
}

type SectionResult = { ok: true; section: unknown } | { ok: false; errors: ConfigError[] };

function parseSection(name: SectionName, value: unknown): SectionResult {
  const schema: z.ZodType = sections[name];
  // A date is an object without keys, which would pass for an empty section.
  const result = schema.safeParse(value instanceof Date ? String(value) : (value ?? {}));
  if (result.success) {
    const rules = sectionRules[name] as ((section: unknown) => (string | null)[]) | undefined;
    const broken = (rules?.(result.data) ?? []).filter((rule) => rule !== null);
    if (broken.length === 0) return { ok: true, section: result.data };
    return { ok: false, errors: broken.map((message) => ({ field: name, kind: 'rule', message: `${name}: ${message}` })) };
  }
  if (value === undefined) return { ok: false, errors: [{ field: name, kind: 'missing', message: `the section [${name}] is missing` }] };
  return { ok: false, errors: result.error.issues.flatMap((issue) => toErrors(name, value, issue)) };
}

function toErrors(section: SectionName, value: unknown, issue: z.core.$ZodIssue): ConfigError[] {
  const field = [section, ...issue.path].join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ field: `${field}.${key}`, kind: 'unknown_key', message: `${field}.${key} is not a known key` }));
  }
  const given = issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], value);
  const kind = kindOf(issue, given);
  return [{ field, kind, message: kind === 'missing' ? `${field} is missing` : `${field} = ${shown(given)}: ${issue.message}` }];
}

function kindOf(issue: z.core.$ZodIssue, given: unknown): ConfigErrorKind {
  if (given === undefined) return 'missing';
  if (issue.code === 'invalid_value') return 'not_in_choices';
  if (issue.code === 'custom') return 'rule';
  if (issue.message === NOT_WHOLE) return 'wrong_type';
  if (issue.code === 'too_small' || issue.code === 'too_big') return 'out_of_range';
  return issue.code === 'invalid_type' && issue.expected === 'number' && typeof given === 'number' ? 'out_of_range' : 'wrong_type';
}

function shown(value: unknown): string {
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : JSON.stringify(value);
}
