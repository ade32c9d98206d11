import { readFile, stat } from 'node:fs/promises';
import { describeConfigErrors, parseRunConfig, type RunConfig, startProblems, withBackend } from '../core/config/index.ts';
import type { StartInput } from '../core/run/start-input.ts';
import { parseTaskIds } from '../core/run/task-ids.ts';
import { asInputProblem, InputProblem } from './input-problem.ts';
import { reallyBelow } from './run-folder.ts';

/** Far above any config or split: what is larger is another file. */
const MAX_BYTES = 8 * 1024 * 1024;

/** The run config from TOML text, or from a path below the project root, with the backend that the run was started with. */
export async function readConfig(
  projectRoot: string,
  { config: given, backend }: Pick<StartInput, 'config' | 'backend'>,
): Promise<{ text: string; parsed: RunConfig }> {
  const text = isTomlText(given) ? given : await read(projectRoot, given, 'config');
  const name = isTomlText(given) ? 'config' : given;
  const parsed = parseRunConfig(text, name);
  if (!parsed.ok) throw new InputProblem('config', describeConfigErrors(parsed.errors));
  const config = withBackend(parsed.config, backend);
  const problems = startProblems(config).map((error) => ({ ...error, message: `${name}: ${error.message}` }));
  if (problems.length > 0) throw new InputProblem('config', describeConfigErrors(problems));
  return { text, parsed: config };
}

/** Task ids from an array, or from a JSON file below the project root. Duplicates are refused. */
export async function readTaskIds(
  projectRoot: string,
  given: string | readonly string[],
  field: string,
): Promise<{ text: string; ids: readonly string[] }> {
  const text = typeof given === 'string' ? await read(projectRoot, given, field) : JSON.stringify(given);
  const { ids, problem } = parseTaskIds(text);
  if (problem !== null) throw new InputProblem(field, problem.message);
  return { text, ids };
}

/** The text of a file below the project root. @throws InputProblem when it cannot be read there */
export async function read(projectRoot: string, path: string, field: string): Promise<string> {
  const text = await readIfThere(projectRoot, path, field);
  if (text === null) throw new InputProblem(field, `there is no file ${path} below the project root`);
  return text;
}

/** The same, null where there is no such file. */
export async function readIfThere(projectRoot: string, path: string, field: string): Promise<string | null> {
  try {
    const whole = await reallyBelow(projectRoot, path, field);
    const found = await stat(whole).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? null : Promise.reject(error)));
    if (found === null) return null;
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
