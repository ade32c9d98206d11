import { extname } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { BadHarborInput } from './errors.ts';

type Fields = Record<string, unknown>;

/** Values under these keys are the environment's, the verifier's or the agent's own, nulls included. */
const OPAQUE = new Set(['kwargs', 'env']);

/**
 * The object that a job file holds, which is YAML or JSON by its name's ending, as for harbor. Keys that are null are as good as absent, as
 * for harbor. Throws `BadHarborInput` naming the file.
 */
export function parseJobFile(text: string, file: string): Fields {
  const value = /^\.ya?ml$/i.test(extname(file)) ? read('YAML', text, file, parseYaml) : read('JSON', text, file, JSON.parse);
  if (!isObject(value)) throw new BadHarborInput(`${file}: must be an object with harbor's job keys, not ${kindOf(value)}`);
  return withoutNulls(value) as Fields;
}

function read(language: string, text: string, file: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new BadHarborInput(`${file}: not ${language}: ${(error as Error).message.split('\n')[0]}`);
  }
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(kept.map(([key, inner]) => [key, OPAQUE.has(key) ? inner : withoutNulls(inner)]));
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

export const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
