import { ActivityFailure, ApplicationFailure, ChildWorkflowFailure } from '@temporalio/workflow';

/** The failure of an activity or a child, however deep, as the run's own: its name and words are what a person should read first. */
export function namedFailure(error: unknown): unknown {
  const cause = innermost(error);
  if (cause === error || !(cause instanceof ApplicationFailure)) return error;
  const { message, type, details } = cause;
  return ApplicationFailure.create({
    message,
    nonRetryable: true,
    cause: error as Error,
    ...(type ? { type } : {}),
    ...(details ? { details } : {}),
  });
}

function innermost(error: unknown): unknown {
  return error instanceof ActivityFailure || error instanceof ChildWorkflowFailure ? innermost(error.cause) : error;
}
