import { ApplicationFailure, CancelledFailure } from '@temporalio/workflow';
import { reservationUsd, type TrialKind } from '../core/money/reservations.ts';
import { fitsUnder } from '../core/money/trial-ledger.ts';
import { billingPauseIn } from './broken-off.ts';
import type { Allowance, Blocked, ChildOutcome } from './child-outcome.ts';
import { batchCounted } from './read-books.ts';
import { type Run, RunStopped } from './run.ts';
import { type ChildHandle, runChild } from './run-child.ts';

/** A child of a run that costs money by trials. */
export type TrialsOrder<Result, Done> = {
  readonly label: string;
  /** What of the run it is, as a question names it: `step 3`, `the teacher evaluation`. */
  readonly what: string;
  readonly kind: TrialKind;
  /** What the ids of its trials begin with. */
  readonly batch: string;
  readonly trials: number;
  readonly start: (allowance: Allowance, begun: Done | undefined) => Promise<ChildHandle<ChildOutcome<Result, Done>>>;
};

/**
 * Runs a child with trials to its end. One that cannot go on hands over what is done: that is booked, the training state is saved, a person is
 * asked for as long as it takes, and it is started again with what was done.
 */
export async function withMoney<Result, Done>(run: Run, order: TrialsOrder<Result, Done>): Promise<Result> {
  const perTrialUsd = reservationUsd(run.pinned.plan.reserves, run.facts.trialCosts, order.kind);
  let held = null as Blocked<Done> | null;
  for (;;) {
    await run.breathe();
    await affordTrials(run, order, perTrialUsd, held);
    const allowance = { capUsd: run.desk.maxUsd, spentUsd: run.facts.bookedUsd, perTrialUsd };
    const begun: Done | undefined = held?.done;
    const atOnce = Math.min(run.pinned.plan.trialConcurrency, order.trials - (held?.trials.done ?? 0));
    const start = () => order.start(allowance, begun);
    const outcome: ChildOutcome<Result, Done> = await batchCounted(run, order.batch, () =>
      runChild(run, order.label, atOnce * perTrialUsd, start),
    );
    if (outcome.kind === 'done') return outcome.result;
    held = outcome;
    run.facts.updateBegun = outcome.stage === 'update';
    await run.bookOpen(outcome.paid);
    if (run.desk.stopping) throw new RunStopped();
    if (outcome.reason === 'cancelled') throw new CancelledFailure(`${order.label} was cancelled`);
    if (outcome.reason === 'failing') throw sameFailure(run, outcome.told);
    if (outcome.reason === 'billing') await waitForBilling(run, outcome.told);
  }
}

/** Trials that fail for one cause over and over end the run: another try is a person's to begin. */
function sameFailure(run: Run, told: string): ApplicationFailure {
  run.note(told);
  return ApplicationFailure.nonRetryable(told, 'SameFailure');
}

/** Waits at the cap until one more trial fits under it, however often a person must raise it. A child whose trials are done costs none. */
async function affordTrials<Done>(
  run: Run,
  { what, trials }: Pick<TrialsOrder<unknown, Done>, 'what' | 'trials'>,
  perTrialUsd: number,
  held: Blocked<Done> | null,
): Promise<void> {
  if (held !== null && held.trials.done === held.trials.all) return;
  const { bookedUsd } = run.facts;
  const needUsd = held?.needUsd ?? bookedUsd + perTrialUsd;
  const restUsd = held?.restUsd ?? bookedUsd + trials * perTrialUsd;
  const progress = held === null ? `has ${trials} trials to run` : `has run ${held.trials.done} of ${held.trials.all} trials`;
  await waitAtCap(run, { needUsd, restUsd }, `${what} ${progress}; one more may cost ${usdText(perTrialUsd)}`);
}

/** Waits at the cap until `usd` more fits under it. */
export async function afford(run: Run, usd: number, what: string): Promise<void> {
  const needUsd = run.facts.spend.usd + usd;
  await waitAtCap(run, { needUsd, restUsd: needUsd }, `${what} may cost ${usdText(usd)}`);
}

type Needs = { readonly needUsd: number; readonly restUsd: number };

async function waitAtCap(run: Run, { needUsd, restUsd }: Needs, what: string): Promise<void> {
  while (!fitsUnder(run.desk.maxUsd, needUsd)) {
    await run.saveBeforeWaiting();
    const { spend } = run.facts;
    const spent = `${usdText(spend.usd)} of ${usdText(run.desk.maxUsd ?? 0)} are spent`;
    const question = `${what}; ${spent}${unseen(run)}. It goes on with a budget of ${usdText(needUsd)} or more. Raise the budget or stop.`;
    const enoughUsd = Math.ceil(Math.max(restUsd, run.board.spend().forecastUsd ?? 0));
    await run.desk.ask('budget', question, [...run.commands('setBudget', { maxUsd: enoughUsd }), ...run.commands('stop')]);
    await run.breathe();
  }
}

function unseen(run: Run): string {
  const { blindTo } = run.board.spend();
  return blindTo.length === 0 ? '' : ` (the cap cannot see ${blindTo.join(', ')}: no price)`;
}

/** Runs work of the run itself that the service may refuse for want of payment: a person is asked, and the same is done again. */
export async function paid<T>(run: Run, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const told = billingPauseIn(error);
      if (told === null || run.desk.stopping) throw error;
      await waitForBilling(run, told);
    }
  }
}

/** Waits until a person says that the service is paid. */
async function waitForBilling(run: Run, told: string): Promise<void> {
  await run.saveBeforeWaiting();
  const question = `The service wants payment: ${told}. Pay it, then resume; or stop.`;
  await run.desk.ask('billing', question, [...run.commands('resume'), ...run.commands('stop')]);
  await run.breathe();
}

/** USD that a person may type: rounded up, so that what is told is enough. */
function usdText(usd: number): string {
  const digits = usd >= 100 ? 2 : usd >= 1 ? 4 : usd >= 0.01 ? 6 : 8;
  const scale = 10 ** digits;
  return `$${(Math.ceil(usd * scale - 1e-3) / scale).toFixed(digits).replace(/(\.\d\d.*?)0+$/, '$1')}`;
}
