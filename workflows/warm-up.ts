import { CancellationScope, startChild, workflowInfo } from '@temporalio/workflow';
import { evaluationUsd } from '../core/estimate/evaluations-ahead.ts';
import type { BlobRef } from '../core/ids.ts';
import type { WarmupProgress } from '../core/run/warm-up.ts';
import { collect } from './collect.ts';
import { briefActivities, training } from './proxies.ts';
import { CHILD, type Run } from './run.ts';
import { openTraining, saveState, startAnew } from './training-loop.ts';

/** The name of the state that a warm-up leaves: where training goes on from when no step has saved one. */
const STATE_NAME = 'warmup';

/** Supervised updates on the teacher's own episodes, before the first step. Does nothing where none is planned, and nothing twice. */
export async function warmUp(run: Run): Promise<void> {
  if (run.pinned.plan.warmup.steps === 0 || run.facts.warmup?.statePath) return;
  await run.phase('warmup', async () => {
    run.facts.warmup ??= await gathered(run);
    await openTraining(run);
    while (warmupOf(run).updates < run.pinned.plan.warmup.steps) {
      if (workflowInfo().continueAsNewSuggested) await startAnew(run);
      await update(run);
      const { updates } = warmupOf(run);
      const isLast = updates === run.pinned.plan.warmup.steps;
      if (!isLast && updates % run.pinned.plan.saveStateEvery === 0)
        await saveState(run, `${STATE_NAME}-${String(updates).padStart(4, '0')}`);
    }
    const statePath = await saveState(run, STATE_NAME);
    run.facts.warmup = { ...warmupOf(run), statePath };
    run.facts.checkpoints = { ...run.facts.checkpoints, warmupState: statePath };
  });
}

function warmupOf(run: Run): WarmupProgress {
  if (!run.facts.warmup) throw new Error('the warm-up has no trajectories yet');
  return run.facts.warmup;
}

async function gathered(run: Run): Promise<WarmupProgress> {
  const list = run.pinned.plan.warmup.loaded ? null : await collected(run);
  const set = await briefActivities().gatherWarmup({ run: run.pinned.ref, list });
  run.note(set.notice);
  return { set, updates: 0, lossNatsPerToken: null, statePath: null };
}

/** The teacher plays the training tasks. What that may cost is known from its evaluation, where it was measured by this run. */
async function collected(run: Run): Promise<BlobRef> {
  const { ref, trialPrefix, plan, train, runId } = run.pinned;
  const { teacher, warmup } = plan;
  const trials = train.length * warmup.rolloutsPerTask;
  await run.afford(evaluationUsd('teacher', trials, run.facts), 'the trajectories of the warm-up');
  const { list, ...usage } = await run.child('warm-up', () =>
    startChild(collect, {
      workflowId: `${runId}.warmup`,
      args: [{ run: ref, trialPrefix, plan, teacher, tasks: train }],
      staticSummary: `warm-up: the teacher on ${train.length} training tasks × ${warmup.rolloutsPerTask}`,
      ...CHILD,
    }),
  );
  await run.book(usage);
  return list;
}

async function update(run: Run): Promise<void> {
  const { ref, plan } = run.pinned;
  const { set, updates } = warmupOf(run);
  const number = updates + 1;
  await run.breathe();
  await run.afford(set.updateUsd, `update ${number} of the warm-up`);
  const places = await briefActivities().drawWarmup({ run: ref, datums: set.datums, update: number });
  // An update that was started is finished and booked, whatever happens to the run around it.
  await CancellationScope.nonCancellable(async () => {
    const trained = await training(plan).trainWarmup.executeWithOptions({ summary: `warm-up · update ${number}` }, [
      { run: ref, set: set.ref, places, update: number, training: run.training },
    ]);
    run.facts.training = trained.training;
    for (const notice of trained.notices) run.note(`warm-up: ${notice}`);
    run.facts.warmup = { ...warmupOf(run), updates: number, lossNatsPerToken: trained.row.loss_nats_per_token };
    await briefActivities().noteWarmup({ run: ref, row: trained.row });
    await run.book(trained);
  });
}
