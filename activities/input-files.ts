import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { describeConfigErrors, parseRunConfig, type RunConfig, refuseUnbuilt } from '../core/config/index.ts';
import { below } from './run-folder.ts';

/** Something wrong with what a run was given. `field` is the input's or file's own name for it. */
export class InputProblem extends Error {
  override readonly name = 'InputProblem';
  readonly field: string;
  constructor(field: string, message: string) {
    super(`${field}: ${message}`);
    this.field = field;
  }
}

/** The run config from TOML text, or from a path below the project root. */
export async function readConfig(projectRoot: string, given: string): Promise<{ text: string; parsed: RunConfig }> {
  const isText = given.includes('\n') || given.includes('=');
  const text = isText ? given : await read(projectRoot, given, 'config');
  const name = isText ? 'config' : given;
  const parsed = parseRunConfig(text, name);
  if (!parsed.ok) throw new InputProblem('config', describeConfigErrors(parsed.errors));
  const unbuilt = refuseUnbuilt(parsed.config);
  if (unbuilt.length > 0) throw new InputProblem('config', describeConfigErrors(unbuilt));
  return { text, parsed: parsed.config };
}

/** Task ids from an array, or from a JSON file below the project root. Duplicates are refused. */
export async function readTaskIds(
  projectRoot: string,
  given: string | readonly string[],
  field: string,
): Promise<{ text: string; ids: readonly string[] }> {
  const text = typeof given === 'string' ? await read(projectRoot, given, field) : JSON.stringify(given);
  const parsed = z.array(z.string().min(1)).min(1).safeParse(asJson(text, field));
  if (!parsed.success) throw new InputProblem(field, `must be a JSON array of task ids: ${z.prettifyError(parsed.error)}`);
  const seen = new Set<string>();
  for (const id of parsed.data) {
    if (seen.has(id)) throw new InputProblem(field, `task ${id} is there twice: a split names each task once`);
    seen.add(id);
  }
  return { text, ids: parsed.data };
}

export async function read(projectRoot: string, path: string, field: string): Promise<string> {
  try {
    return await readFile(below(projectRoot, path, field), 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new InputProblem(field, code === 'ENOENT' ? `there is no file ${path} below the project root` : message);
  }
}

function asJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputProblem(field, `is not JSON: ${(error as Error).message}`);
  }
}
