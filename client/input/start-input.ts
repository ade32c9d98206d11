import { type RunConfig, startProblems } from '../../core/config/index.ts';
import type { SplitSizes } from '../../core/estimate/index.ts';
import type { Branch } from '../../core/run/branch.ts';
import type { StartInput } from '../../core/run/start-input.ts';
import { agentProblem } from './agent.ts';
import { isBelow } from './below.ts';
import { checkLocalBaselines } from './local-baselines.ts';
import { findLocalBranch } from './local-branch.ts';
import { checkLocalTasks } from './local-tasks.ts';
import { checkLocalTrajectories } from './local-trajectories.ts';
import { Problems } from './problems.ts';
import { type RunFiles, readConfigFile, readSplits } from './run-files.ts';
import { unboundedSpend } from './spend.ts';

/** What `start` was asked for, as typed. */
export type StartRequest = RunFiles & {
  readonly agent: string;
  readonly promote?: boolean;
  readonly yes?: boolean;
  readonly runDir?: string;
  /** A run, `RUN@step-N`, or the path of saved training state. */
  readonly from?: string;
  /** The job template, the tasks, imported baselines and trajectories, and the run it starts from, are only on the workers' machines: they are checked there, when the run resolves. */
  readonly tasksElsewhere?: boolean;
};

export type BuiltStart = {
  readonly input: StartInput;
  readonly config: RunConfig;
  readonly sizes: SplitSizes;
  /** What the run will start from, as the store here has it; null for a fresh adapter, or where only the workers can tell. */
  readonly branch: Branch | null;
};

/**
 * Reads and checks everything a run starts from, and puts the files' contents into its input.
 * @throws InputRefused with all that is wrong, each file and field by name, before anything is started.
 */
export async function buildStartInput(request: StartRequest, projectRoot: string): Promise<BuiltStart> {
  const problems = new Problems();
  const { agent, backend, promote, yes, runDir, from } = request;
  const { text, config } = await readConfigFile(request, problems);
  for (const { kind, message } of config ? startProblems(config) : [])
    problems.add(kind === 'not_built' ? kind : 'config_invalid', `${request.config}: ${message}`);
  const { train, holdout } = await readSplits(request, problems);
  if (!request.tasksElsewhere) {
    const found = await agentProblem(projectRoot, agent, config);
    if (found) problems.add(found.kind, found.message);
    if (config && train && holdout) await checkLocalTasks(projectRoot, config, { train, holdout }, problems);
    if (config && holdout) await checkLocalBaselines(projectRoot, config, holdout, problems);
    if (config) await checkLocalTrajectories(projectRoot, config, problems);
  }
  const branch =
    from === undefined
      ? null
      : await findLocalBranch(from, { projectRoot, config, holdout, problems, elsewhere: request.tasksElsewhere === true });
  if (runDir !== undefined && !isBelow(projectRoot, runDir))
    problems.add('run_dir', `--run-dir ${runDir}: must be below the project root, where workers may write`);
  problems.throwIfAny();
  if (text === null || !config || !train || !holdout) throw new Error('what has no problem was read');
  const given = Object.fromEntries(Object.entries({ backend, promote, yes, runDir, from }).filter(([, value]) => value !== undefined));
  const sizes = { nTrain: train.length, nHoldout: holdout.length };
  return { input: { agent, config: text, taskIds: [...train], holdoutTaskIds: [...holdout], ...given }, config, sizes, branch };
}

/**
 * The same for a run that is to start now: unbounded spend always needs a person, and without one at the terminal nobody would answer.
 * @throws InputRefused
 */
export async function prepareStart(request: StartRequest, projectRoot: string, atTerminal: boolean): Promise<BuiltStart> {
  const built = await buildStartInput(request, projectRoot);
  const problem = atTerminal ? null : unboundedSpend(built.config, built.sizes);
  const problems = new Problems();
  if (problem !== null) problems.add('unbounded_spend', `${problem}; or start it at a terminal, where a person confirms the cost`);
  problems.throwIfAny();
  return built;
}
