import type { ReapOutcome } from './reap.ts';

/** Sandboxes that an E2B account of the first paid tier may run at once. */
export const DEFAULT_SANDBOX_CAP = 100;

/** The environment variable that says otherwise. */
export const CAP_VARIABLE = 'STILLROOM_E2B_SANDBOX_CAP';

/** A cap that is not a number of sandboxes. */
export class BadSandboxCap extends Error {
  override readonly name = 'BadSandboxCap';
}

/** The cap from the variable's value; absent or blank means the default, digits may be grouped (`1_000`). @throws BadSandboxCap for anything but a whole number above 0 */
export function sandboxCap(value: string | null | undefined): number {
  const text = value?.trim() ?? '';
  if (text === '') return DEFAULT_SANDBOX_CAP;
  const cap = /^\+?[0-9]+(_[0-9]+)*$/.test(text) ? Number(text.replaceAll('_', '')) : 0;
  if (!Number.isSafeInteger(cap) || cap < 1)
    throw new BadSandboxCap(`${CAP_VARIABLE} must be a whole number of sandboxes, 1 or more; got ${JSON.stringify(value)}`);
  return cap;
}

/** Is there room for a run? One sandbox per concurrent trial. */
export type Capacity = {
  readonly cap: number;
  readonly running: number;
  readonly free: number;
  readonly required: number;
  readonly ok: boolean;
};

export function capacity({ cap, running, required }: Pick<Capacity, 'cap' | 'running' | 'required'>): Capacity {
  const free = Math.max(0, cap - running);
  return { cap, running, free, required, ok: free >= required };
}

/** Room after a reap: what was killed and what turned out to be gone already is free. */
export function capacityAfterReap({ cap, running, required }: Capacity, reap: Pick<ReapOutcome, 'killed' | 'alreadyGone'>): Capacity {
  return capacity({ cap, required, running: running - reap.killed.length - reap.alreadyGone.length });
}

/** Why a run without room is refused, and what it can afford. */
export function capacityRefusal({ cap, running, free, required }: Capacity): string {
  const numbers = `E2B sandboxes: ${required} needed, ${free} free (${running} running, cap ${cap})`;
  const advice = free === 0 ? 'wait until some end' : `set train.trial_concurrency to at most ${free}, or wait until some end`;
  return `${numbers}; ${advice}, or raise ${CAP_VARIABLE} if the account allows more`;
}

/** Why the capacity could not be looked up. */
export type CapacityProblem = 'bad_cap' | 'no_client' | 'credential_rejected' | 'api_error';

/** What is wrong on our side stops the run before it spends; an API that does not answer now may answer when the trials come. */
export function onCapacityProblem(problem: CapacityProblem): 'refuse' | 'warn' {
  return problem === 'api_error' ? 'warn' : 'refuse';
}
