import { isAbsolute, relative, resolve } from 'node:path';
import { parseRunConfig, type RunConfig, refuseUnbuilt, withBackend } from '../../core/config/index.ts';
import type { StartInput } from '../../core/run/start-input.ts';
import { agentProblem } from './agent.ts';
import { readInputFile } from './files.ts';
import { checkLocalTasks } from './local-tasks.ts';
import { Problems } from './problems.ts';
import { unboundedSpend } from './spend.ts';
import { overlapProblems, readTaskIds } from './task-ids.ts';

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
 * @throws InputRefused with all that is wrong, each file and field by name, before anything is started.
 */
export async function buildStartInput(request: StartRequest, projectRoot: string): Promise<BuiltStart> {
  const problems = new Problems();
  const { agent, backend, promote, yes, runDir } = request;
  const configFile = await readInputFile(request.config, '--config');
  if ('problem' in configFile) problems.add('config_unreadable', configFile.problem);
  const config = 'text' in configFile ? checkedConfig(configFile.text, request, problems) : null;
  const train = await readTaskIds(request.tasks, '--tasks', problems);
  const holdout = await readTaskIds(request.holdout, '--holdout', problems);
  if (train && holdout) problems.add('overlap', ...overlapProblems(train, holdout));
  if (!request.tasksElsewhere) {
    const found = await agentProblem(projectRoot, agent);
    if (found) problems.add(found.kind, found.message);
    if (config && train && holdout) await checkLocalTasks(projectRoot, config, { train, holdout }, problems);
  }
  if (runDir !== undefined && !isBelow(projectRoot, runDir))
    problems.add('run_dir', `--run-dir ${runDir}: must be below the project root, where workers may write`);
  problems.throwIfAny();
  if (!config || !train || !holdout || !('text' in configFile)) throw new Error('what has no problem was read');
  const given = Object.fromEntries(Object.entries({ backend, promote, yes, runDir }).filter(([, value]) => value !== undefined));
  return { input: { agent, config: configFile.text, taskIds: [...train], holdoutTaskIds: [...holdout], ...given }, config };
}

/**
 * The same for a run that is to start now: unbounded spend always needs a person, and without one at the terminal nobody would answer.
 * @throws InputRefused
 */
export async function prepareStart(request: StartRequest, projectRoot: string, atTerminal: boolean): Promise<BuiltStart> {
  const built = await buildStartInput(request, projectRoot);
  const { input, config } = built;
  const problem = atTerminal ? null : unboundedSpend(config, { nTrain: input.taskIds.length, nHoldout: input.holdoutTaskIds.length });
  const problems = new Problems();
  if (problem !== null) problems.add('unbounded_spend', `${problem}; or start it at a terminal, where a person confirms the cost`);
  problems.throwIfAny();
  return built;
}

function isBelow(root: string, path: string): boolean {
  const inside = relative(root, resolve(root, path));
  return inside !== '' && !inside.startsWith('..') && !isAbsolute(inside);
}

/** The config with the backend that was asked for; null when it is none. */
function checkedConfig(text: string, { config: path, backend }: StartRequest, problems: Problems): RunConfig | null {
  const parsed = parseRunConfig(text, path);
  if (!parsed.ok) {
    problems.add('config_invalid', ...parsed.errors.map(({ message }) => message));
    return null;
  }
  const config = withBackend(parsed.config, backend);
  problems.add('not_built', ...refuseUnbuilt(config).map(({ message }) => `${path}: ${message}`));
  return config;
}
