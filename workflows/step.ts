import { CancellationScope, continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import { addPaid } from '../core/measures/usage.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { GuardState, MoneySoFar, StepResult, TrainingRef } from '../core/run/results.ts';
import { inSlotOrder, slotsOf } from '../core/run/slots.ts';
import { stepOfName } from '../core/run/step-name.ts';
import type { EpisodeScore, PinnedTask, PublishedSampler, TrialSummary } from '../core/run/trial.ts';
import { billingPauseIn } from './broken-off.ts';
import { type Allowance, blocked, type ChildOutcome, ledgerOf } from './child-outcome.ts';
import { attemptSlot } from './one-trial.ts';
import type { OpenSlot } from './open-slot.ts';
import { briefActivities, teacher, training } from './proxies.ts';
import { type PoolState, type SlotCost, type TaskSlot, TrialPool } from './trial-pool.ts';

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

/** One trial of the batch with its teacher's score; null when it left nothing to score. */
export type StepTrial = { readonly slot: string; readonly trial: TrialSummary; readonly score: EpisodeScore | null };

/** What a step has done when it goes on elsewhere. */
export type StepDone = PoolState<StepTrial> & { readonly tasks: readonly PinnedTask[]; readonly startedAtMs: number };

/** One batch: draw tasks, sample episodes, score each as soon as it ends, update the weights, write the row. */
export async function step(input: StepInput, begun?: StepDone): Promise<ChildOutcome<StepResult, StepDone>> {
  const { run, plan } = input;
  const startedAtMs = begun?.startedAtMs ?? Date.now();
  const state = begun ?? null;
  const ledger = ledgerOf(input.allowance, state, costOf);
  const tasks = begun?.tasks ?? (await briefActivities().drawStepTasks({ run, step: input.step }));
  const slots = slotsOf(`${input.trialPrefix}-${stepMark(input.step)}`, tasks, plan.groupSize);
  const pool = new TrialPool<StepTrial>({ label: `step ${input.step}`, slots, state, ledger, costOf });
  const halt = await pool.fill(plan.trialConcurrency, (slot, open, reached) => sampleAndScore(input, slot, open, reached));
  const done = { ...pool.state, tasks, startedAtMs };
  if (halt) return blocked(pool, halt, 'trials', done);
  if (!pool.complete) return continueAsNew<typeof step>({ ...input, allowance: { ...input.allowance, capUsd: ledger.capUsd } }, done);

  // An update that was started is finished and booked, whatever happens to the run around it.
  return CancellationScope.nonCancellable(async () => {
    try {
      return { kind: 'done', result: await update(input, inSlotOrder(pool.done), { tasks: tasks.length, startedAtMs }) };
    } catch (error) {
      const told = billingPauseIn(error);
      if (told === null) throw error;
      return blocked(pool, { reason: 'billing', told }, 'update', done);
    }
  });
}

const stepMark = (step: number) => `s${String(step).padStart(4, '0')}`;

function costOf({ trial, score }: StepTrial): SlotCost {
  return { paid: score ? addPaid(trial, score) : trial, heldUsd: score?.trainUsd ?? 0 };
}

async function sampleAndScore(
  input: StepInput,
  { place, task }: TaskSlot,
  open: OpenSlot,
  reached: (open: OpenSlot) => void,
): Promise<{ done: StepTrial } | { again: OpenSlot }> {
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
  trials: readonly StepTrial[],
  { tasks, startedAtMs }: { readonly tasks: number; readonly startedAtMs: number },
): Promise<StepResult> {
  const { version, path } = sampler;
  const episodes = trials.flatMap(({ score }) => (score?.scored ? [{ scored: score.scored, candidates: score.candidates }] : []));
  const total = (key: 'sampledTokens' | 'maskedTokens') => trials.reduce((sum, { trial }) => sum + trial[key], 0);
  const train = await training(plan).trainBatch.executeWithOptions({ summary: `step ${number} · update` }, [
    {
      run,
      step: number,
      sampler: version,
      training: student,
      sampledTokens: total('sampledTokens'),
      maskedTokens: total('maskedTokens'),
      episodes,
    },
  ]);
  const stalenessSteps = number - 1 - stepOfName(version);
  const facts = { run, step: number, tasks, guard, money, trials, train, startedAtMs };
  return briefActivities().closeStep({ ...facts, sampler: { version, path, stalenessSteps } });
}
