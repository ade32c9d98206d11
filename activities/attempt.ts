import { activityInfo } from '@temporalio/activity';
import type { Attempt } from '../core/training/journal.ts';

/** The attempt that runs here, as it signs what it writes. */
export function thisAttempt(): Attempt {
  const { workflowExecution, activityId, attempt } = activityInfo();
  return { executionId: workflowExecution?.runId ?? '', activityId, attempt };
}
