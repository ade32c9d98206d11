/** gRPC's number for "nobody is there now". */
export const UNAVAILABLE = 14;

/** The gRPC status code inside an error of the Temporal client, however deep; null when it is another kind of error. */
export function grpcCodeOf(error: unknown): number | null {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'number' && 'details' in at) return at.code;
  return isTimeout(error) ? DEADLINE_EXCEEDED : null;
}

const DEADLINE_EXCEEDED = 4;

const isTimeout = (error: unknown) => error instanceof Error && error.name === 'WorkflowUpdateRPCTimeoutOrCancelledError';
