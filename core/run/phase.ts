/** The phases of a run, in order. `ended` is shown with the outcome. */
export const PHASES = [
  'resolve',
  'estimate',
  'confirm',
  'preflight',
  'baselines',
  'warmup',
  'steps',
  'final',
  'evaluation',
  'gate',
  'approve',
  'promote',
  'ended',
] as const;
export type Phase = (typeof PHASES)[number];

/** How a run can end without failing. */
export const OUTCOMES = [
  'promoted',
  'accepted',
  'promotion declined',
  'rejected',
  'declined',
  'stopped',
  'stopped by tripwire',
  'stopped: nothing to train on',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What a run can wait for. */
export const WAIT_KINDS = ['cost', 'budget', 'billing', 'teacher', 'promotion', 'pause'] as const;

/** A question only a person can answer, with the command that answers it. */
export type Wait = {
  readonly id: string;
  readonly kind: (typeof WAIT_KINDS)[number];
  readonly question: string;
  readonly answers: readonly string[];
  readonly since: string;
};
