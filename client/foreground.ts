import { isBounded } from '../core/run/cost-confirmation.ts';
import type { Console } from './console.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { type Followed, followRun, type Snapshot } from './follow.ts';
import { askPerson, isAskable } from './questions.ts';
import type { RunClient } from './run-client.ts';
import { estimateTable } from './view/estimate-table.ts';
import { finalText } from './view/final.ts';
import { openProgressView, type ProgressView } from './view/progress-view.ts';
import type { RunReport } from './view/report.ts';

const LIVE_MS = 400;
const PLAIN_MS = 1_000;

export type ForegroundOptions = {
  readonly signal: AbortSignal;
  readonly view?: ProgressView;
  /** Signs the answers to questions that are asked at a terminal. */
  readonly decision: (waitId: string) => Record<string, unknown>;
};

/** The part of `RunClient` that the foreground needs. */
export type ForegroundRun = Pick<RunClient, 'state' | 'status' | 'progress' | 'heldUp' | 'end' | 'estimate' | 'send'>;

/** Shows a run until it ends, and asks the person at the terminal what only a person can answer. Rejects with an AbortError on `signal`. */
export async function followInForeground(run: ForegroundRun, console: Console, options: ForegroundOptions): Promise<Followed> {
  const { signal, decision } = options;
  const view = options.view ?? openProgressView(console);
  const logged = costLog(run, console);
  const onSnapshot = async (snapshot: Snapshot) => {
    if (!console.interactive) await logged(snapshot);
    view.show(snapshot);
    const wait = snapshot.status?.waitingFor;
    if (!console.interactive || !snapshot.status || !wait || !isAskable(wait)) return;
    view.rest();
    const byDefault = wait.kind === 'cost' ? await showEstimate(run, console, snapshot.status.spend.maxUsd) : null;
    await askPerson(run, wait, { decision, signal, byDefault, tell: (text) => console.print(text) });
  };
  try {
    return await followRun(run, { intervalMs: console.interactive ? LIVE_MS : PLAIN_MS, signal, onSnapshot });
  } finally {
    view.rest();
  }
}

/** The whole estimate, before somebody is asked whether it is worth it. Returns what just Enter should mean: yes only to bounded spend. */
async function showEstimate(run: ForegroundRun, console: Console, maxUsd: number | null): Promise<boolean | null> {
  const estimate = await run.estimate().catch(() => null); // the question stands by itself, and is asked again when nobody answers
  if (!estimate) return null;
  console.print(`\n${estimateTable(estimate, maxUsd, console.colors)}\n`);
  return isBounded({ fullyPriced: estimate.fullyPriced, maxUsd });
}

/** Where nobody sits, the estimate is printed once, above the line that says how to answer the question about the cost. */
function costLog(run: ForegroundRun, console: Console): (snapshot: Snapshot) => Promise<void> {
  let shownFor: string | null = null;
  return async ({ status }) => {
    const wait = status?.waitingFor;
    if (console.json || !status || wait?.kind !== 'cost' || wait.id === shownFor) return;
    if ((await showEstimate(run, console, status.spend.maxUsd)) !== null) shownFor = wait.id;
  };
}

/** Failures that mean the run's input was wrong. */
const INPUT_FAILURES: readonly (string | null)[] = ['BadRunInput'];

/** Prints the end of a run and returns the exit code. */
export function reportEnd(report: RunReport, console: Console, failOnReject: boolean): number {
  const exitCode = exitCodeOfReport(report, failOnReject);
  console.result({ ...report, exitCode });
  console.print(`\n${finalText(report, console.colors)}`);
  return exitCode;
}

/** The exit code for the end of a run: input that was wrong is 2, any other failure 1. */
export function exitCodeOfReport({ outcome, failure }: Pick<RunReport, 'outcome' | 'failure'>, failOnReject: boolean): number {
  if (failure) return INPUT_FAILURES.includes(failure.type) ? EXIT.badInput : EXIT.failed;
  return outcome === null ? EXIT.failed : exitCodeOf(outcome, failOnReject);
}
