import { memberTexts } from '../json-text.ts';
import type { CallText } from './family.ts';

/**
 * A call written as a JSON object with `name` and one of `argumentKeys`. The arguments keep the text that the model wrote, so that
 * no number changes its form; arguments that are themselves JSON text in a string are taken out of it. Null when it is none.
 */
export function jsonCall(text: string, argumentKeys: readonly string[] = ['arguments']): CallText | null {
  const whole = text.trim();
  const value = parsedObject(whole);
  if (value === null || typeof value.name !== 'string' || value.name === '') return null;
  const key = argumentKeys.find((candidate) => candidate in value);
  const id = typeof value.id === 'string' ? { id: value.id } : {};
  if (key === undefined) return { name: value.name, arguments: '{}', ...id };
  const given = value[key];
  if (typeof given === 'string') return parsedObject(given) === null ? null : { name: value.name, arguments: given, ...id };
  if (!isObject(given)) return null;
  const written = memberTexts(whole, [key]).get(key);
  return written === undefined ? null : { name: value.name, arguments: written, ...id };
}

/** Arguments that stand alone: the text of a JSON object, trimmed; null when it is none. */
export function jsonArguments(text: string): string | null {
  return parsedObject(text) === null ? null : text.trim();
}

function parsedObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
