import { readFile, stat } from 'node:fs/promises';
import { z } from 'zod';
import { describeConfigErrors, parseRunConfig, type RunConfig, refuseUnbuilt } from '../core/config/index.ts';
import { asInputProblem, InputProblem } from './input-problem.ts';
import { reallyBelow } from './run-folder.ts';

/** Far above any config or split: what is larger is another file. */
const MAX_BYTES = 8 * 1024 * 1024;

/** The run config from TOML text, or from a path below the project root. */
export async function readConfig(projectRoot: string, given: string): Promise<{ text: string; parsed: RunConfig }> {
  const text = isTomlText(given) ? given : await read(projectRoot, given, 'config');
  const name = isTomlText(given) ? 'config' : given;
  const parsed = parseRunConfig(text, name);
  if (!parsed.ok) throw new InputProblem('config', describeConfigErrors(parsed.errors));
  const unbuilt = refuseUnbuilt(parsed.config).map((error) => ({ ...error, message: `${name}: ${error.message}` }));
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

/** The text of a file below the project root. @throws InputProblem when it cannot be read there */
export async function read(projectRoot: string, path: string, field: string): Promise<string> {
  try {
    const whole = await reallyBelow(projectRoot, path, field);
    const found = await stat(whole);
    if (!found.isFile()) throw new InputProblem(field, `${path} is not a file`);
    if (found.size > MAX_BYTES)
      throw new InputProblem(field, `${path} has ${found.size} bytes, more than ${MAX_BYTES}: is it the right file?`);
    return await readFile(whole, 'utf8');
  } catch (error) {
    throw asInputProblem(error, field, `file ${path}`);
  }
}

/** A config has several tables, so its text has several lines; one line with `=` is a text that was cut, unless it ends like a file. */
function isTomlText(given: string): boolean {
  return given.includes('\n') || (given.includes('=') && !given.endsWith('.toml'));
}

function asJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputProblem(field, `is not JSON: ${(error as Error).message}`);
  }
}
