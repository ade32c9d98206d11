import type { Outcome } from '../core/run/phase.ts';

export const EXIT = { ok: 0, failed: 1, badInput: 2, notAccepted: 3, interrupted: 130 } as const;

/** Outcomes without a verdict that no person chose: guards ended the training. */
const GUARDED: readonly Outcome[] = ['stopped by tripwire', 'stopped: nothing to train on'];

/**
 * Exit code of a run that ended without failing: 0 for a verdict, a decline or a stop by a person. With `failOnReject` (the demo
 * always) a gate that did not accept is 3, and so is a tripwire stop: its weights were not accepted either.
 */
export function exitCodeOf(outcome: Outcome, failOnReject: boolean): number {
  if (failOnReject && (outcome === 'rejected' || outcome === 'stopped by tripwire')) return EXIT.notAccepted;
  return GUARDED.includes(outcome) ? EXIT.failed : EXIT.ok;
}
