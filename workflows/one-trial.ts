import type { BlobRef } from '../core/ids.ts';
import { addPaid } from '../core/measures/usage.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { ModelRef, PinnedTask, TrialSummary } from '../core/run/trial.ts';
import { mayRetry } from '../core/run/trial-retry.ts';
import { type Again, type OpenSlot, trialIdOf } from './open-slot.ts';
import { rollouts } from './proxies.ts';

export type TrialOrder = {
  readonly run: BlobRef;
  readonly plan: RunPlan;
  readonly task: PinnedTask;
  readonly who: 'student' | 'teacher';
  readonly model: ModelRef;
  readonly maxTurns: number;
  /** True where the trial is going to be scored and trained on. */
  readonly trains: boolean;
  /** What a person reads beside the activity, e.g. `step 7 · trial 12 · copy-sun-to-map`. */
  readonly summary: string;
};

/**
 * Runs one attempt at a slot. A trial whose infrastructure failed says nothing about the model: it is tried again under a new id, so that
 * nothing of the failed attempt is mistaken for the new one's, at most `infraRetries` times and only while it is worth it. What all of them
 * used is paid for, and each needs its own reservation.
 */
export async function attemptSlot(order: TrialOrder, open: OpenSlot): Promise<{ trial: TrialSummary } | Again> {
  if (open.stage === 'score') return { trial: open.trial };
  const { slot, retry } = open;
  const trialId = trialIdOf(open);
  const { run, task, who, model, maxTurns, trains } = order;
  const summary = await rollouts(order.plan).runTrial.executeWithOptions({ summary: order.summary }, [
    { run, trialId, task, who, model, maxTurns, trains },
  ]);
  const paid = {
    ...addPaid(open.paid, summary),
    replayedTokens: open.paid.replayedTokens + summary.replayedTokens,
    reboughtTokens: open.paid.reboughtTokens + summary.reboughtTokens,
  };
  if (mayRetry(summary, retry, order.plan.infraRetries))
    return { again: { slot, stage: 'sample', retry: retry + 1, paid }, failed: summary };
  return { trial: { ...summary, ...paid } };
}
