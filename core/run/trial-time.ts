/** What a trial may take beside its agent's own time: to build and start the sandbox, to set up, to grade and to clear away. */
const OVERHEAD_MS = 25 * 60_000;
/** How long a trial that was told to end may take to do so; then it is given up. */
const GRACE_MS = 2 * 60_000;
/** For what an attempt does around its trial. */
const MARGIN_MS = 3 * 60_000;

export type TrialLimits = {
  /** The most that a trial may take in all; then it is cancelled. */
  readonly limitMs: number;
  /** From when it was cancelled, for whatever reason, to when it is given up. */
  readonly graceMs: number;
};

/** What a trial may take whose agent has so much time. */
export const trialLimits = (agentMs: number): TrialLimits => ({ limitMs: agentMs + OVERHEAD_MS, graceMs: GRACE_MS });

/** The most that an attempt at such a trial takes; one that takes longer has lost its worker. */
export const attemptLimitMs = (agentMs: number): number => agentMs + OVERHEAD_MS + GRACE_MS + MARGIN_MS;
