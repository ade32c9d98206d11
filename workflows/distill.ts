import { ActivityFailure, ApplicationFailure, CancellationScope, isCancellation } from '@temporalio/workflow';
import { closeRun, saveFinal } from './closing.ts';
import type { RunResult } from './messages.ts';
import { namedFailure } from './named-failure.ts';
import { openRun } from './opening.ts';
import { briefActivities } from './proxies.ts';
import { isCarry, Run, type RunCarry, RunStopped } from './run.ts';
import { closeTraining, trainSteps } from './training-loop.ts';
import { warmUp } from './warm-up.ts';

/**
 * One distillation run, from its input to a verdict: resolve → estimate → confirm → preflight → baselines → [warm-up] → steps → final
 * weights → evaluation → gate → approve → promote. `carried` is set when the run goes on in a new execution.
 */
export async function distill(input: unknown, carried?: RunCarry): Promise<RunResult> {
  if (carried !== undefined && !isCarry(carried)) throw ApplicationFailure.nonRetryable('a run takes one input', 'BadRunInput');
  const run = new Run(carried);
  try {
    const early = carried ? null : await openRun(run, input);
    if (early === null) await warmUp(run);
    const guarded = early ?? (await run.phase('steps', () => trainSteps(run)));
    if (guarded !== null) await closeTraining(run);
    return await finish(run, guarded ?? (await closeRun(run)));
  } catch (error) {
    if (error instanceof RunStopped) return await CancellationScope.nonCancellable(() => stopped(run));
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => stopped(run));
    throw isCancellation(error) ? error : namedFailure(error);
  }
}

/** Saves what was trained so far, then ends the run as stopped. */
async function stopped(run: Run): Promise<RunResult> {
  const trained = run.facts.step > 0 || (run.facts.warmup?.updates ?? 0) > 0;
  if (run.facts.training && run.facts.weights === null) await (trained ? saveFinal(run) : closeTraining(run));
  return finish(run, 'stopped');
}

async function finish(run: Run, outcome: RunResult['outcome']): Promise<RunResult> {
  const result = run.end(outcome);
  await mirror(run);
  return result;
}

/** The mirror is nobody's truth: a full disk there must not turn a run that reached its end into a failed one. */
async function mirror(run: Run): Promise<void> {
  if (!run.facts.pinned) return;
  try {
    await briefActivities().mirrorRun({
      run: run.facts.pinned.ref,
      status: run.board.status(),
      keepCalls: run.facts.outcome === 'stopped',
    });
  } catch (error) {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    run.note(`status.json could not be written to ${run.facts.pinned.runDir}: ${error.cause?.message}`);
  }
}
