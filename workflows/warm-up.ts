import { CancellationScope, startChild, workflowInfo } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { WarmupProgress } from '../core/run/warm-up.ts';
import { batchOfCollection, type CollectDone, collect } from './collect.ts';
import { briefActivities, training } from './proxies.ts';
import type { Run } from './run.ts';
import { CHILD } from './run-child.ts';
import { afford, paid, withMoney } from './run-money.ts';
import { saveState } from './saving.ts';
import { openTraining, startAnew } from './training-loop.ts';

/** The name of the state that a warm-up leaves: where training goes on from when no step has saved one. */
export const WARMUP_STATE = 'warmup';

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
        await saveState(run, `${WARMUP_STATE}-${String(updates).padStart(4, '0')}`);
    }
    const statePath = await saveState(run, WARMUP_STATE);
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

/** The teacher plays the training tasks. */
async function collected(run: Run): Promise<BlobRef> {
  const { ref, trialPrefix, plan, train, runId } = run.pinned;
  const { teacher, warmup } = plan;
  const { list, ...usage } = await withMoney(run, {
    label: 'warm-up',
    what: "the teacher's play for the warm-up",
    kind: 'teacher',
    batch: batchOfCollection(trialPrefix),
    trials: train.count * warmup.rolloutsPerTask,
    start: (allowance, begun?: CollectDone) => {
      const input = { run: ref, trialPrefix, plan, teacher, tasks: train, allowance };
      return startChild(collect, {
        workflowId: `${runId}.warmup`,
        args: begun ? [input, begun] : [input],
        staticSummary: `warm-up: the teacher on ${train.count} training tasks × ${warmup.rolloutsPerTask}`,
        ...CHILD,
      });
    },
  });
  await run.book(usage);
  return list;
}

async function update(run: Run): Promise<void> {
  const { ref, plan } = run.pinned;
  const { set, updates } = warmupOf(run);
  const number = updates + 1;
  await run.breathe();
  await afford(run, set.updateUsd, `update ${number} of the warm-up`);
  const places = await briefActivities().drawWarmup({ run: ref, datums: set.datums, update: number });
  run.facts.updateBegun = true;
  const order = { run: ref, set: set.ref, places, update: number, training: run.training };
  const summary = `warm-up · update ${number}`;
  // An update that was started is finished and booked, whatever happens to the run around it.
  const trained = await paid(run, () =>
    CancellationScope.nonCancellable(() => training(plan).trainWarmup.executeWithOptions({ summary }, [order])),
  );
  await CancellationScope.nonCancellable(async () => {
    run.facts.training = trained.training;
    for (const notice of trained.notices) run.note(`warm-up: ${notice}`);
    run.facts.warmup = { ...warmupOf(run), updates: number, lossNatsPerToken: trained.row.loss_nats_per_token };
    await briefActivities().noteWarmup({ run: ref, row: trained.row });
    await run.book(trained);
  });
}
