import type { ToolDefinition } from '../renderer.ts';

/** JSON Schema types that a parameter may have. Empty: nothing is said. */
export type ParameterTypes = ReadonlySet<string>;

/** The tools of a request by name, and of each the types of its parameters. */
export type ToolShapes = ReadonlyMap<string, ReadonlyMap<string, ParameterTypes>>;

/** Entries that are no function with a name are left out: a call of them is then a call of an unknown tool. */
export function toolShapes(tools: readonly ToolDefinition[]): ToolShapes {
  const shapes = new Map<string, ReadonlyMap<string, ParameterTypes>>();
  for (const { json } of tools) {
    const entry = record(parsed(json));
    const tool = record(entry.function ?? entry);
    if (typeof tool.name !== 'string') continue;
    const properties = Object.entries(record(record(tool.parameters).properties));
    shapes.set(tool.name, new Map(properties.map(([name, schema]) => [name, typesOf(schema)])));
  }
  return shapes;
}

/**
 * The JSON of an argument that was written as plain text. A string stays what it is; the other types are taken when the text is a
 * value of the type, also in Python's spelling (`True`, `None`); everything else is a string.
 */
export function argumentJson(text: string, types: ParameterTypes | undefined): string {
  const asString = JSON.stringify(text);
  if (types === undefined || types.size === 0 || types.has('string')) {
    const isNull = types?.has('null') && /^\s*(null|None)\s*$/.test(text);
    return isNull ? 'null' : asString;
  }
  const json = text
    .trim()
    .replace(/^(True|False)$/, (word) => word.toLowerCase())
    .replace(/^None$/, 'null');
  const value = parsed(json);
  if (value === undefined) return asString;
  return [...types].some((type) => isOf(value, type)) ? json : asString;
}

/** An object's JSON from texts that are JSON already. */
export function objectJson(fields: readonly (readonly [name: string, json: string])[]): string {
  return `{${fields.map(([name, json]) => `${JSON.stringify(name)}: ${json}`).join(', ')}}`;
}

function typesOf(schema: unknown): ParameterTypes {
  const { type, anyOf, oneOf } = record(schema);
  const own = Array.isArray(type) ? type : [type];
  const others = [anyOf, oneOf].flatMap((choices) => (Array.isArray(choices) ? choices.flatMap((choice) => [...typesOf(choice)]) : []));
  return new Set([...own, ...others].filter((name) => typeof name === 'string'));
}

function isOf(value: unknown, type: string): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'null':
      return value === null;
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.fromEntries(Object.entries(value)) : {};
}
