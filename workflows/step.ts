import { CancellationScope, continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { KeptTrials, PlayedSlot } from '../core/run/kept-trials.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { GuardState, MoneySoFar, StepResult, TrainingRef } from '../core/run/results.ts';
import { batchOfStep, slotsOf } from '../core/run/slots.ts';
import { stepOfName } from '../core/run/step-name.ts';
import type { PinnedTask, PublishedSampler } from '../core/run/trial.ts';
import { billingPauseIn } from './broken-off.ts';
import { type Allowance, blocked, type ChildOutcome, ledgerOf } from './child-outcome.ts';
import { attemptSlot } from './one-trial.ts';
import type { Again, OpenSlot } from './open-slot.ts';
import { briefActivities, teacher, training } from './proxies.ts';
import { type PoolState, type TaskSlot, TrialPool } from './trial-pool.ts';

export type StepInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly step: number;
  readonly sampler: PublishedSampler;
  readonly training: TrainingRef;
  readonly guard: GuardState;
  readonly money: MoneySoFar;
  readonly allowance: Allowance;
};

/** What a step has done when it goes on elsewhere. */
export type StepDone = PoolState & { readonly tasks: readonly PinnedTask[]; readonly startedAtMs: number };

/** One batch: draw tasks, sample episodes, score each as soon as it ends, update the weights, write the row. */
export async function step(input: StepInput, begun?: StepDone): Promise<ChildOutcome<StepResult, StepDone>> {
  const { run, plan } = input;
  const startedAtMs = begun?.startedAtMs ?? Date.now();
  const state = begun ?? null;
  const ledger = ledgerOf(input.allowance, state);
  const tasks = begun?.tasks ?? (await briefActivities().drawStepTasks({ run, step: input.step }));
  const slots = slotsOf(batchOfStep(input.trialPrefix, input.step), tasks, plan.groupSize);
  const pool = new TrialPool({ label: `step ${input.step}`, run, plan, slots, state, ledger });
  const halt = await pool.fill(plan.trialConcurrency, (slot, open, reached) => sampleAndScore(input, slot, open, reached));

  // What was paid for is kept, and an update that was started is finished and booked, whatever happens to the run around it.
  return CancellationScope.nonCancellable(async () => {
    const kept = await pool.keep();
    const done = { ...kept, tasks, startedAtMs };
    if (halt) return blocked(pool, halt, 'trials', done);
    if (!pool.complete) return continueAsNew<typeof step>({ ...input, allowance: { ...input.allowance, capUsd: ledger.capUsd } }, done);
    try {
      return { kind: 'done', result: await update(input, kept.done.kept, { tasks: tasks.length, startedAtMs }) };
    } catch (error) {
      const told = billingPauseIn(error);
      if (told === null) throw error;
      return blocked(pool, { reason: 'billing', told }, 'update', done);
    }
  });
}

async function sampleAndScore(
  input: StepInput,
  { place, task }: TaskSlot,
  open: OpenSlot,
  reached: (open: OpenSlot) => void,
): Promise<{ done: PlayedSlot } | Again> {
  const { run, plan, sampler: model } = input;
  const { slot } = open;
  const summary = `step ${input.step} · trial ${place} · ${task.id}`;
  const order = { run, plan, task, who: 'student', model, maxTurns: plan.rolloutMaxTurns, trains: true, summary } as const;
  const made = await attemptSlot(order, open);
  if ('again' in made) return made;
  const { trial } = made;
  reached({ slot, stage: 'score', trial });
  if (trial.spans === null) return { done: { slot, trial, score: null } };
  const score = await teacher().scoreEpisode.executeWithOptions({ summary: `${summary} · score` }, [
    { run, trialId: trial.trialId, spans: trial.spans, stopReason: trial.stopReason, sampler: model.version },
  ]);
  return { done: { slot, trial, score } };
}

/** Trains on a batch and closes the step. */
async function update(
  { run, plan, step: number, sampler, training: student, guard, money }: StepInput,
  trials: KeptTrials,
  { tasks, startedAtMs }: { readonly tasks: number; readonly startedAtMs: number },
): Promise<StepResult> {
  const { version, path } = sampler;
  const train = await training(plan).trainBatch.executeWithOptions({ summary: `step ${number} · update` }, [
    { run, step: number, sampler: version, training: student, trials },
  ]);
  const stalenessSteps = number - 1 - stepOfName(version);
  const facts = { run, step: number, tasks, guard, money, trials, train, startedAtMs };
  return briefActivities().closeStep({ ...facts, sampler: { version, path, stalenessSteps } });
}
