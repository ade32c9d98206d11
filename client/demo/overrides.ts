import { parse, stringify, TomlError } from 'smol-toml';
import { CliError } from '../errors.ts';

export type Override = { readonly key: string; readonly value: string };

/** `train.steps=4` → key and value. @throws CliError when it has another form. */
export function parseOverride(text: string): Override {
  const equals = text.indexOf('=');
  const key = text.slice(0, equals).trim();
  if (equals < 1 || !/^[\w-]+(\.[\w-]+)+$/.test(key))
    throw new CliError(`--config-override "${text}": must look like section.key=value, for example train.steps=4`);
  return { key, value: text.slice(equals + 1).trim() };
}

/** TOML text with values replaced. A value is read as TOML where it is that, else as a string. Comments are lost. */
export function overrideToml(text: string, overrides: readonly Override[]): string {
  const document = parse(text) as Record<string, unknown>;
  for (const { key, value } of overrides) {
    const path = key.split('.');
    const last = path.pop() as string;
    let at = document;
    for (const name of path) {
      const next = at[name] ?? {};
      if (typeof next !== 'object' || next === null) throw new CliError(`--config-override ${key}: ${name} is a value, not a section`);
      at[name] = next;
      at = next as Record<string, unknown>;
    }
    at[last] = tomlValue(value);
  }
  return stringify(document);
}

function tomlValue(text: string): unknown {
  try {
    return parse(`value = ${text}`).value;
  } catch (error) {
    if (error instanceof TomlError) return text;
    throw error;
  }
}
