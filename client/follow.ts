import { setTimeout as sleep } from 'node:timers/promises';
import type { RunStatus, TrialProgress } from '../workflows/messages.ts';
import { NoAnswer, NoServer } from './errors.ts';
import type { HeldUp } from './held-up.ts';
import { orAborted } from './interrupt.ts';
import type { RunClient, RunEnd } from './run-client.ts';

/** What is known of a run at one moment. `trouble` says why it may be old. */
export type Snapshot = {
  readonly status: RunStatus | null;
  readonly progress: TrialProgress | null;
  readonly heldUp: readonly HeldUp[];
  readonly trouble: string | null;
};

/** A followed run to its end: the last status that could be read, and how the execution ended. */
export type Followed = { readonly end: RunEnd; readonly status: RunStatus | null; readonly wallMs: number };

/** The part of `RunClient` that following needs. */
export type FollowedRun = Pick<RunClient, 'state' | 'status' | 'progress' | 'heldUp' | 'end'>;

export type FollowOptions = {
  readonly intervalMs: number;
  readonly signal?: AbortSignal;
  /** Called with every new snapshot. May take its time: the run is read again afterwards. */
  readonly onSnapshot: (snapshot: Snapshot) => Promise<void> | void;
};

const AWAY = 'the Temporal server does not answer; trying again';
const NO_WORKER = 'no worker answers; waiting for one';

/**
 * Reads a run again and again until it ends. A server that goes away and workers that die are ridden out; an unknown run is an error.
 */
export async function followRun(run: FollowedRun, { intervalMs, signal, onSnapshot }: FollowOptions): Promise<Followed> {
  let last: Snapshot = { status: null, progress: null, heldUp: [], trouble: null };
  for (;;) {
    const seen = await orAborted(look(run, last), signal);
    if ('end' in seen) return seen;
    last = seen;
    await onSnapshot(last);
    await sleep(intervalMs, undefined, signal ? { signal } : {});
  }
}

/** One look at the run: a new snapshot, or its end. What cannot be read now is trouble, and the old snapshot stays. */
async function look(run: FollowedRun, last: Snapshot): Promise<Snapshot | Followed> {
  try {
    const state = await run.state();
    if (!state.open) return await ended(run, last.status, state.startedAtMs, state.closedAtMs);
    const status = await run.status();
    const [progress, heldUp] = await Promise.all([childProgress(run, status), childHeldUp(run, status)]);
    return { status, progress, heldUp: [...state.heldUp, ...heldUp], trouble: null };
  } catch (error) {
    return { ...last, trouble: troubleOf(error) };
  }
}

/** The trials of the step or evaluation that is under way. */
export const childProgress = (run: Pick<RunClient, 'progress'>, { child }: RunStatus): Promise<TrialProgress | null> =>
  child === null ? Promise.resolve(null) : unlessGone(run.progress(child.workflowId), null);

/** What holds up the step or evaluation that is under way. */
export const childHeldUp = (run: Pick<RunClient, 'heldUp'>, { child }: RunStatus): Promise<readonly HeldUp[]> =>
  child === null ? Promise.resolve([]) : unlessGone(run.heldUp(child.workflowId), []);

/** A child may have just ended, or not yet begun: then there is nothing of it to show. */
async function unlessGone<T>(answer: Promise<T>, nothing: T): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof NoServer) throw error;
    return nothing;
  }
}

async function ended(run: FollowedRun, known: RunStatus | null, startedAtMs: number, closedAtMs: number | null): Promise<Followed> {
  const end = await run.end();
  const status = await run.status().catch(() => known);
  return { end, status, wallMs: (closedAtMs ?? Date.now()) - startedAtMs };
}

function troubleOf(error: unknown): string {
  if (error instanceof NoServer) return AWAY;
  if (error instanceof NoAnswer) return NO_WORKER;
  throw error;
}
