import { connectTo, type Link } from '../connection.ts';
import type { Console } from '../console.ts';
import { followInForeground, reportEnd } from '../foreground.ts';
import { freshRunId } from '../input/run-id.ts';
import type { BuiltStart } from '../input/start-input.ts';
import { RunClient } from '../run-client.ts';
import type { Stack } from '../stack/stack.ts';
import { startRun } from '../starting.ts';
import type { ProgressView } from '../view/progress-view.ts';
import { reportOf } from '../view/report.ts';
import type { WallPart } from '../view/wall-table.ts';
import { CurrentRun } from './current-run.ts';

export type DemoRun = {
  readonly stateDir: string;
  readonly taskQueue: string;
  readonly built: BuiltStart;
  /** What was done before the stack ran, for the table of times. */
  readonly before: readonly WallPart[];
  readonly view: ProgressView;
  readonly signal: AbortSignal;
  /** Signs answers that a person at the terminal gives. */
  readonly decision: (waitId: string) => Record<string, unknown>;
};

/** Goes on with the demo's open run or starts a new one, shows it to its end, and returns the exit code. */
export async function runDemo(stack: Stack, console: Console, demo: DemoRun): Promise<number> {
  const link = await connectTo(stack.address);
  try {
    const run = await openOrStart(link, console, demo);
    console.print(`Web UI: ${stack.webUrl}/namespaces/${link.namespace}/workflows/${run.runId}`);
    console.print(`other terminals reach it with: export TEMPORAL_ADDRESS=${stack.address}\n`);
    const followed = await followInForeground(run, console, demo);
    const report = reportOf(run.runId, followed);
    const wall = [...demo.before, { part: 'start-up', ms: stack.startUpMs }, ...report.wall];
    return reportEnd({ ...report, wall }, console, true);
  } finally {
    await link.close();
  }
}

async function openOrStart(link: Link, console: Console, { stateDir, taskQueue, built }: DemoRun): Promise<RunClient> {
  const current = new CurrentRun(stateDir);
  const open = await current.open(link);
  if (open) {
    console.print(`going on with ${open.runId}, which was interrupted; it keeps the settings it was started with`);
    return open;
  }
  const runId = freshRunId('demo', new Date());
  const { config, input } = built;
  current.remember(runId);
  await startRun(link, input, { runId, taskQueue, summary: `demo: ${config.student.base_model} learns from ${config.teacher.model}` });
  console.print(`started ${runId}: ${config.train.steps} steps of ${config.train.tasks_per_batch} tasks × ${config.train.group_size}`);
  return new RunClient(link, runId);
}
