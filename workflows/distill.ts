import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ContinueAsNew,
  isCancellation,
} from '@temporalio/workflow';
import { closeRun, saveFinal } from './closing.ts';
import type { RunResult } from './messages.ts';
import { namedFailure } from './named-failure.ts';
import { openRun } from './opening.ts';
import { briefActivities } from './proxies.ts';
import { bookingAfter, bookTraining } from './read-books.ts';
import { restoreSaved } from './restoring.ts';
import { isCarry, Run, type RunCarry, RunStopped } from './run.ts';
import { saveBeforeWaiting } from './saving.ts';
import { closeTraining, trainSteps } from './training-loop.ts';
import { warmUp } from './warm-up.ts';

/**
 * One distillation run, from its input to a verdict: resolve → estimate → confirm → preflight → baselines → [warm-up] → steps → final
 * weights → evaluation → gate → approve → promote. `carried` is set when the run goes on in a new execution.
 */
export async function distill(input: unknown, carried?: RunCarry): Promise<RunResult> {
  if (carried !== undefined && !isCarry(carried)) throw ApplicationFailure.nonRetryable('a run takes one input', 'BadRunInput');
  const run = new Run(restoreSaved, carried);
  run.saveBeforeWaiting = () => saveBeforeWaiting(run);
  try {
    const early = carried ? null : await openRun(run, input);
    if (early === null) await warmUp(run);
    const guarded = early ?? (await run.phase('steps', () => trainSteps(run)));
    if (guarded !== null) await closeTraining(run);
    return await finish(run, guarded ?? (await closeRun(run)));
  } catch (error) {
    if (error instanceof RunStopped) return await CancellationScope.nonCancellable(() => stopped(run));
    if (error instanceof ContinueAsNew) throw error;
    // Work whose worker died before it heard of the cancellation ends by its timeout.
    if (isCancellation(error) || CancellationScope.current().consideredCancelled) {
      run.desk.stopping = true; // nobody is asked any more
      await CancellationScope.nonCancellable(() => stopped(run));
      throw isCancellation(error) ? error : new CancelledFailure('the run was cancelled');
    }
    await failed(run);
    throw namedFailure(error);
  }
}

/** All that was paid for is booked before the run fails. */
function failed(run: Run): Promise<void> {
  return CancellationScope.nonCancellable(async () => {
    await bookingAfter(run, async () => {
      await bookTraining(run);
      const { meters, lost } = run.facts.openUsage;
      if (Object.keys(meters).length + lost.length > 0) await run.bookBrokenOff();
    });
    await left(run);
  });
}

/** Books what was broken off, saves what was trained so far, then ends the run as stopped. */
async function stopped(run: Run): Promise<RunResult> {
  if (run.facts.pinned) await run.bookBrokenOff();
  const trained = run.facts.step > 0 || (run.facts.warmup?.updates ?? 0) > 0;
  if (run.facts.training && run.facts.weights === null) await (trained ? saveStopped(run) : closeTraining(run));
  return finish(run, 'stopped');
}

/** Weights that an unfinished update has touched are those of no step. A service that saves nothing, e.g. until it is paid, ends the run all the same. */
async function saveStopped(run: Run): Promise<void> {
  if (run.facts.updateBegun) await bookTraining(run);
  if (run.facts.updateBegun) run.note(`an update was not finished, so nothing is saved now; ${lastSaved(run)}`);
  else
    try {
      return await saveFinal(run);
    } catch (error) {
      if (!(error instanceof ActivityFailure)) throw error;
      run.note(`the last weights could not be saved: ${error.cause?.message}; ${lastSaved(run)}`);
    }
  await closeTraining(run);
}

function lastSaved({ facts: { savedState } }: Run): string {
  return savedState ? `the last saved state is ${savedState.path}` : 'no state was saved before';
}

/** What the run leaves on the service stays for whoever goes on from it. */
async function left(run: Run): Promise<void> {
  await run.keeping.leave();
  await run.keeping.stop();
}

/** A run whose outcome is known ends with it: a cancellation that comes now comes too late. */
function finish(run: Run, outcome: RunResult['outcome']): Promise<RunResult> {
  return CancellationScope.nonCancellable(async () => {
    await left(run);
    const result = run.end(outcome);
    await mirror(run);
    return result;
  });
}

/** The mirror is nobody's truth: a full disk there must not turn a run that reached its end into a failed one. */
async function mirror(run: Run): Promise<void> {
  if (!run.facts.pinned) return;
  try {
    await briefActivities().mirrorRun({
      run: run.facts.pinned.ref,
      status: run.board.status(),
      checkpoints: run.keeping.view(),
      keepCalls: run.facts.outcome === 'stopped',
    });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    run.note(`status.json could not be written to ${run.facts.pinned.runDir}: ${error.cause?.message}`);
  }
}
