import { CancellationScope, continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { PlayedSlot } from '../core/run/kept-trials.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { GuardState, MoneySoFar, StepResult, TrainingRef } from '../core/run/results.ts';
import { slotsOf } from '../core/run/slots.ts';
import { stepOfName } from '../core/run/step-name.ts';
import type { PinnedTask, PublishedSampler } from '../core/run/trial.ts';
import type { CarriedSlots } from './filled-slots.ts';
import { runSlot } from './one-trial.ts';
import { briefActivities, teacher, training } from './proxies.ts';
import { type TaskSlot, TrialPool } from './trial-pool.ts';

export type StepInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly step: number;
  readonly sampler: PublishedSampler;
  readonly training: TrainingRef;
  readonly guard: GuardState;
  readonly money: MoneySoFar;
};

type Carried = { readonly tasks: readonly PinnedTask[]; readonly done: CarriedSlots; readonly startedAtMs: number };

/** One batch: draw tasks, sample episodes, score each as soon as it ends, update the weights, write the row. */
export async function step(input: StepInput, carried?: Carried): Promise<StepResult> {
  const { run, plan } = input;
  const { version } = input.sampler;
  const startedAtMs = carried?.startedAtMs ?? Date.now();
  const tasks = carried?.tasks ?? (await briefActivities().drawStepTasks({ run, step: input.step }));
  const slots = slotsOf(`${input.trialPrefix}-${stepMark(input.step)}`, tasks, plan.groupSize);
  const pool = new TrialPool({ label: `step ${input.step}`, run, slots, carried: carried?.done });
  await pool.fill(plan.trialConcurrency, (slot) => sampleAndScore(input, slot));
  if (!pool.complete) return continueAsNew<typeof step>(input, { tasks, done: await pool.keep(), startedAtMs });

  // An update that was started is finished and booked, whatever happens to the run around it.
  return CancellationScope.nonCancellable(async () => {
    const { kept: trials } = await pool.keep();
    const train = await training(plan).trainBatch.executeWithOptions({ summary: `step ${input.step} · update` }, [
      {
        run,
        step: input.step,
        sampler: version,
        training: input.training,
        trials,
      },
    ]);
    return briefActivities().closeStep({
      run,
      step: input.step,
      tasks: tasks.length,
      sampler: { version, path: input.sampler.path, stalenessSteps: input.step - 1 - stepOfName(version) },
      guard: input.guard,
      money: input.money,
      trials,
      train,
      startedAtMs,
    });
  });
}

const stepMark = (step: number) => `s${String(step).padStart(4, '0')}`;

async function sampleAndScore(input: StepInput, { id: slot, place, task }: TaskSlot): Promise<PlayedSlot> {
  const { run, plan, sampler } = input;
  const summary = `step ${input.step} · trial ${place} · ${task.id}`;
  const trial = await runSlot({ run, plan, slot, task, who: 'student', model: sampler, maxTurns: plan.rolloutMaxTurns, summary });
  if (trial.spans === null) return { slot, trial, score: null };
  const score = await teacher().scoreEpisode.executeWithOptions({ summary: `${summary} · score` }, [
    { run, trialId: trial.trialId, spans: trial.spans, stopReason: trial.stopReason, sampler: sampler.version },
  ]);
  return { slot, trial, score };
}
