import { isAbsolute, relative, resolve } from 'node:path';
import { parseRunConfig, type RunConfig, refuseUnbuilt } from '../../core/config/index.ts';
import { builtinAgent } from '../../core/run/builtin-agents.ts';
import type { StartInput } from '../../core/run/start-input.ts';
import { readInputFile } from './files.ts';
import { localTaskProblems } from './local-tasks.ts';
import { Problems } from './problems.ts';
import { overlapProblems, parseTaskIds } from './task-ids.ts';

/** What `start` was asked for, as typed. */
export type StartRequest = {
  readonly agent: string;
  readonly config: string;
  readonly tasks: string;
  readonly holdout: string;
  readonly backend?: 'local' | 'e2b';
  readonly promote?: boolean;
  readonly yes?: boolean;
  readonly runDir?: string;
  /** The job template and the tasks are only on the workers' machines: they are checked there, when the run resolves. */
  readonly tasksElsewhere?: boolean;
};

export type BuiltStart = { readonly input: StartInput; readonly config: RunConfig };

/**
 * Reads and checks everything a run starts from, and puts the files' contents into its input.
 * @throws CliError (bad input) with all that is wrong, each file and field by name, before anything is started.
 */
export async function buildStartInput(request: StartRequest, projectRoot: string): Promise<BuiltStart> {
  const problems = new Problems();
  const known = builtinAgent(request.agent);
  if ('refused' in known) problems.add(`--agent: ${known.refused}`);
  if (request.runDir !== undefined && !isBelow(projectRoot, request.runDir))
    problems.add(`--run-dir ${request.runDir}: must be below the project root, where workers may write`);
  const [configFile, train, holdout] = await Promise.all([
    readInputFile(request.config, '--config'),
    readTaskIds(request.tasks, '--tasks', problems),
    readTaskIds(request.holdout, '--holdout', problems),
  ]);
  const config = 'text' in configFile ? checkedConfig(configFile.text, request.config, problems) : null;
  if ('problem' in configFile) problems.add(configFile.problem);
  problems.add(...overlapProblems(train, holdout));
  problems.throwIfAny();
  if (config === null || !('text' in configFile)) throw new Error('a config without problems has a text');
  if (!request.tasksElsewhere) problems.add(...(await localTaskProblems(projectRoot, config, { train, holdout })));
  problems.throwIfAny();
  const { agent, backend, promote, yes, runDir } = request;
  const optional = { backend, promote, yes, runDir };
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  return { input: { agent, config: configFile.text, taskIds: [...train], holdoutTaskIds: [...holdout], ...given }, config };
}

function isBelow(root: string, path: string): boolean {
  const inside = relative(root, resolve(root, path));
  return inside !== '' && !inside.startsWith('..') && !isAbsolute(inside);
}

async function readTaskIds(path: string, option: string, problems: Problems): Promise<readonly string[]> {
  const file = await readInputFile(path, option);
  if ('problem' in file) {
    problems.add(file.problem);
    return [];
  }
  const read = parseTaskIds(file.text, `${option} ${path}`);
  problems.add(...read.problems);
  return read.ids;
}

function checkedConfig(text: string, path: string, problems: Problems): RunConfig | null {
  const parsed = parseRunConfig(text, path);
  const errors = parsed.ok ? refuseUnbuilt(parsed.config) : parsed.errors;
  if (errors.length > 0) problems.add(...errors.map((error) => error.message));
  return parsed.ok ? parsed.config : null;
}
