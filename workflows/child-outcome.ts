import { setHandler } from '@temporalio/workflow';
import type { Paid } from '../core/measures/usage.ts';
import { TrialLedger } from '../core/money/trial-ledger.ts';
import { capSignal } from './messages.ts';
import { paidIn } from './open-slot.ts';
import type { Halt, PoolState, TrialPool } from './trial-pool.ts';

/** The run's money as a child with trials is told of it. */
export type Allowance = {
  /** Null where there is no cap. */
  readonly capUsd: number | null;
  /** What the run has paid for everything else. */
  readonly spentUsd: number;
  /** What to set aside for one trial. */
  readonly perTrialUsd: number;
};

/**
 * A child that cannot go on by itself: it wants money (`budget`), the service wants payment (`billing`), its trials fail for one cause over and over (`failing`), or it was cancelled. Nothing runs any
 * more; its parent books what was paid, and may start it again with `done`.
 */
export type Blocked<Done> = Halt & {
  readonly kind: 'blocked';
  /** `update` when the weights were already being changed: that must be finished before anything else is asked of them. */
  readonly stage: 'trials' | 'update';
  readonly done: Done;
  /** All that the child took so far. */
  readonly paid: Paid;
  /** Caps in USD: the least under which it can go on, and the one under which it can end, as far as is known. */
  readonly needUsd: number;
  readonly restUsd: number;
  readonly trials: { readonly done: number; readonly all: number };
};

/** How a child with trials ends, unless it fails. */
export type ChildOutcome<Result, Done> = { readonly kind: 'done'; readonly result: Result } | Blocked<Done>;

/** The ledger of a child with what its trials have cost so far. It follows the run's cap, which may be moved at any time. */
export function ledgerOf({ capUsd, spentUsd, perTrialUsd }: Allowance, state: PoolState | null): TrialLedger {
  const openUsd = (state?.open ?? []).reduce((sum, slot) => sum + paidIn(slot).usd, 0);
  const paidUsd = (state?.done.paid.usd ?? 0) + openUsd;
  const heldUsd = state?.done.heldUsd ?? 0;
  const ledger = new TrialLedger({ capUsd, spentUsd: spentUsd + paidUsd, heldUsd, perTrialUsd });
  setHandler(capSignal, (usd) => ledger.setCap(usd));
  return ledger;
}

/** What a child answers whose pool was halted. */
export function blocked<Done>(pool: TrialPool, halt: Halt, stage: Blocked<Done>['stage'], done: Done): Blocked<Done> {
  return { kind: 'blocked', ...halt, stage, done, paid: pool.paid, ...pool.needs, trials: pool.count };
}
