import { z } from 'zod';

/** Work of a run that does not get on: it failed and is tried again, or it waits for the training service. */
export type HeldUp = {
  readonly activity: string;
  /** How many such activities there are. */
  readonly count: number;
  /** The highest attempt among them. */
  readonly attempt: number;
  /** Why the last attempt failed; null when none did. */
  readonly failure: string | null;
  readonly wait: ServiceWait | null;
};

const waitSchema = z.object({ call: z.string(), waitedMs: z.number(), queueState: z.string().nullable(), reason: z.string().nullable() });

/** As the heartbeats of activities tell it. */
export type ServiceWait = Readonly<z.infer<typeof waitSchema>>;

/** The part of a server's description of an execution that is read here. */
export type Pending = {
  readonly activityType?: { readonly name?: string | null } | null;
  readonly attempt?: number | null;
  /** The server's number: 1 for one that waits for its next attempt, 2 for one that runs. */
  readonly state?: number | null;
  readonly lastFailure?: PendingFailure | null;
  readonly heartbeatDetails?: { readonly payloads?: readonly { readonly data?: Uint8Array | null }[] | null } | null;
};
type PendingFailure = {
  readonly message?: string | null;
  readonly timeoutFailureInfo?: object | null;
  readonly cause?: PendingFailure | null;
};

const RUNS = 2;

/** One entry per activity type and cause, in the order of the description. What runs again after its worker had died gets on. */
export function heldUpIn(pending: readonly Pending[]): HeldUp[] {
  const found = new Map<string, HeldUp>();
  for (const { activityType, attempt, state, lastFailure, heartbeatDetails } of pending) {
    const activity = activityType?.name ?? 'an activity';
    const failure = lastFailure && !(state === RUNS && wasLeft(lastFailure)) ? innermost(lastFailure) : null;
    const wait = waitOf(heartbeatDetails?.payloads?.[0]?.data ?? null);
    if (failure === null && wait === null) continue;
    const key = JSON.stringify([activity, failure, wait?.call]);
    const known = found.get(key);
    found.set(key, {
      activity,
      count: (known?.count ?? 0) + 1,
      attempt: Math.max(known?.attempt ?? 0, attempt ?? 1),
      failure,
      wait: (known?.wait?.waitedMs ?? 0) > (wait?.waitedMs ?? 0) ? (known?.wait ?? null) : wait,
    });
  }
  return [...found.values()];
}

/** Whether an attempt failed because its worker was gone, or was told to end: that says nothing of the next one. */
const wasLeft = (failure: PendingFailure) => Boolean(failure.timeoutFailureInfo) || /^Worker is shutting down/.test(innermost(failure));

/** The cause at the bottom has the words. */
function innermost({ message, cause }: PendingFailure): string {
  return cause ? innermost(cause) : message || 'it failed without a message';
}

function waitOf(details: Uint8Array | null): ServiceWait | null {
  if (details === null) return null;
  try {
    return waitSchema.safeParse(JSON.parse(new TextDecoder().decode(details))).data ?? null;
  } catch {
    return null;
  }
}
