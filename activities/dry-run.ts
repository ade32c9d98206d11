import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { failed, passed } from '../core/run/check.ts';
import type { Check } from '../core/run/results.ts';
import type { PinnedTask } from '../core/run/trial.ts';
import { AGENT_CANNOT_PLAY, type AgentConfig, dryRunAgent, removeTree, type TrialRun, trialConfig } from '../services/harbor/index.ts';
import { agentWiring } from './agent-wiring.ts';
import { openTask } from './pinned-tasks.ts';
import type { RolloutDeps } from './rollouts.ts';
import type { RunRecord } from './run-records.ts';

export type DryRunDeps = Pick<RolloutDeps, 'harbor' | 'trialsDir' | 'tasks'>;

const NAME = 'dry-run trial';

/** Tasks tried of each split: the first, the last, and one in the middle. A trial of an agent that does nothing is short. */
const OF_TRAIN = 3;
const OF_HOLDOUT = 2;

/** One trial on each of a few tasks of both splits, all at once, with an agent that does nothing. Tells of every task that cannot be used. */
export async function dryRun(record: RunRecord, deps: DryRunDeps, signal: AbortSignal): Promise<Check> {
  const tasks = [...spread(record.train, OF_TRAIN), ...spread(record.holdout, OF_HOLDOUT)];
  const [trialsDir, runner] = [await deps.trialsDir(), await deps.harbor()];
  const trials = tasks.map(async (task) => ({
    task,
    ...(await outcomeOf(task, record, { runner, trialsDir, tasks: deps.tasks }, signal)),
  }));
  await Promise.allSettled(trials); // one that is cancelled leaves nothing behind
  const ended = await Promise.all(trials);
  const broken = byReason(ended);
  if (broken.length > 0) return failed(NAME, broken.join('\n'));
  const solved = ended.filter(({ reward }) => reward === 1).map(({ task }) => task.id);
  if (solved.length === tasks.length && tasks.length > 1) return failed(NAME, EVERYBODY_PASSES(solved));
  const ms = Math.max(...ended.map((one) => one.ms));
  const told = ended.map(({ task, reward }) => `task ${task.id}: reward ${reward}`).join(', ');
  const check = passed(NAME, `${told} for an agent that does nothing, in ${ms} ms`, { tasks: tasks.length, solved: solved.length, ms });
  return solved.length === 0 ? check : { ...check, warnings: solved.map(solvedByNothing) };
}

const EVERYBODY_PASSES = (ids: readonly string[]) =>
  `the benchmark is broken, its grader gives the full reward to an agent that does nothing: tasks ${ids.join(', ')}. Mend tests/test.sh of these tasks, so that it fails before the work is done`;

const solvedByNothing = (id: string) =>
  `task ${id} gives the full reward to an agent that does nothing: it measures nothing, and lifts every solve rate. Mend its tests/test.sh, or leave it out`;

/** Up to `count` of the tasks, from the first to the last. */
function spread(tasks: readonly PinnedTask[], count: number): PinnedTask[] {
  const step = (tasks.length - 1) / Math.max(1, count - 1);
  const places = new Set(Array.from({ length: Math.min(count, tasks.length) }, (_, at) => Math.round(at * step)));
  return tasks.filter((_, place) => places.has(place));
}

/** A line for each reason, with all tasks that have it; what is wrong with the agent is so whatever the task. */
function byReason(ended: readonly (Ended & { readonly task: PinnedTask })[]): string[] {
  const found = Map.groupBy(
    ended.filter(({ why }) => why !== null),
    ({ why }) => why,
  );
  return [...found].map(([why, of]) => {
    if (of.length === ended.length && of.every(({ isAgents }) => isAgents)) return `${why}`;
    return `task${of.length === 1 ? '' : 's'} ${of.map(({ task }) => task.id).join(', ')}: ${why}`;
  });
}

type TrialDeps = {
  readonly runner: Awaited<ReturnType<DryRunDeps['harbor']>>;
  readonly trialsDir: string;
  readonly tasks: DryRunDeps['tasks'];
};
type Ended = { readonly reward: number | null; readonly ms: number; readonly why: string | null; readonly isAgents?: true };

/** What a task gave, or why it cannot be used. */
async function outcomeOf(task: PinnedTask, record: RunRecord, deps: TrialDeps, signal: AbortSignal): Promise<Ended> {
  try {
    const outcome = await dryTrial(task, record, deps, signal);
    const { reward, timings, exceptionType, exceptionMessage } = outcome;
    const ms = timings.totalMs ?? 0;
    if (exceptionType === AGENT_CANNOT_PLAY)
      return { reward: null, ms, why: `agent ${record.agent.name}: ${exceptionMessage}`, isAgents: true };
    return { reward, ms, why: reward === null ? whyNoReward(outcome) : null };
  } catch (error) {
    if (signal.aborted) throw error;
    return { reward: null, ms: 0, why: error instanceof Error ? error.message : String(error) };
  }
}

/** Its agent does nothing. Less than the workflow waits for this activity, so that the cause is told. */
const DRY_RUN_LIMITS = { limitMs: 15 * 60_000, graceMs: 2 * 60_000 };

async function dryTrial(task: PinnedTask, record: RunRecord, { runner, trialsDir, tasks }: TrialDeps, signal: AbortSignal) {
  const trialName = `${record.trialPrefix}-nop-${randomUUID().slice(0, 8)}`;
  const config = trialConfig({
    taskDir: await openTask(tasks, task, signal),
    trialName,
    trialsDir,
    template: record.jobTemplate,
    agent: probeOf(record),
    timeouts: { agentMs: record.config.rollout.episode_timeout_s * 1000 },
  });
  return runner
    .run(config, { rewardKey: record.config.harbor.reward_key, secrets: NO_KEY, limits: DRY_RUN_LIMITS, signal })
    .finally(() => removeTree(join(trialsDir, trialName)));
}

/** An agent that looks whether the run's own could play, and does nothing. */
function probeOf({ agent, config, jobTemplate }: RunRecord): AgentConfig {
  const { max_turns: maxTurns, context_budget_tokens: contextLimitTokens } = config.rollout;
  return dryRunAgent(agent, agentWiring(config, { model: config.student.base_model, maxTurns, contextLimitTokens }), jobTemplate);
}

/** The agent is made with a key, and asks for nothing with it. */
const NO_KEY = { STILLROOM_GATEWAY_KEY: 'a-key-that-opens-nothing' };

/** A trial that reached its grader had a sandbox; without a reward from there the task itself is at fault. */
function whyNoReward({ infraReason, timings }: TrialRun): string {
  return timings.verifierMs === null
    ? `the sandbox did not get as far as the grader: ${infraReason}`
    : `the benchmark is broken, its grader yields no reward: ${infraReason}`;
}
