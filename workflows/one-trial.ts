import type { BlobRef, TrialId } from '../core/ids.ts';
import { addUsage, NO_USAGE } from '../core/measures/usage.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { ModelRef, PinnedTask, TrialSummary } from '../core/run/trial.ts';
import { mayRetry } from '../core/run/trial-retry.ts';
import { rollouts } from './proxies.ts';

export type TrialOrder = {
  readonly run: BlobRef;
  readonly plan: RunPlan;
  readonly slot: string;
  readonly task: PinnedTask;
  readonly who: 'student' | 'teacher';
  readonly model: ModelRef;
  readonly maxTurns: number;
  /** What a person reads beside the activity, e.g. `step 7 · trial 12 · copy-sun-to-map`. */
  readonly summary: string;
};

/**
 * Runs one slot. A trial whose infrastructure failed says nothing about the model: it is tried again under a new id, so that
 * nothing of the failed attempt is mistaken for the new one's, at most `infraRetries` times and only while it is worth it. What all of them used is paid for.
 */
export async function runSlot(order: TrialOrder): Promise<TrialSummary> {
  let paid = { ...NO_USAGE, replayedTokens: 0, reboughtTokens: 0 };
  for (let retry = 0; ; retry++) {
    const trialId = (retry === 0 ? order.slot : `${order.slot}-r${retry}`) as TrialId;
    const { run, task, who, model, maxTurns } = order;
    const summary = await rollouts(order.plan).runTrial.executeWithOptions({ summary: order.summary }, [
      { run, trialId, task, who, model, maxTurns },
    ]);
    paid = {
      ...addUsage(paid, summary),
      replayedTokens: paid.replayedTokens + summary.replayedTokens,
      reboughtTokens: paid.reboughtTokens + summary.reboughtTokens,
    };
    if (!mayRetry(summary, retry, order.plan.infraRetries)) return { ...summary, ...paid };
  }
}
