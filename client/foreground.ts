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

/** Shows a run until it ends, and asks the person at the terminal what only a person can answer. Rejects with an AbortError on `signal`. */
export async function followInForeground(run: RunClient, console: Console, options: ForegroundOptions): Promise<Followed> {
  const { signal, decision } = options;
  const view = options.view ?? openProgressView(console);
  const onSnapshot = async (snapshot: Snapshot) => {
    view.show(snapshot);
    const wait = snapshot.status?.waitingFor;
    if (!console.interactive || !snapshot.status || !wait || !isAskable(wait)) return;
    view.rest();
    if (wait.kind === 'cost') await showEstimate(run, console, snapshot.status.spend.maxUsd);
    await askPerson(run, wait, { decision, signal, tell: (text) => console.print(text) });
  };
  try {
    return await followRun(run, { intervalMs: console.interactive ? LIVE_MS : PLAIN_MS, signal, onSnapshot });
  } finally {
    view.rest();
  }
}

/** The whole estimate, before somebody is asked whether it is worth it. */
async function showEstimate(run: RunClient, console: Console, maxUsd: number | null): Promise<void> {
  const estimate = await run.estimate().catch(() => null); // the question stands by itself, and is asked again when nobody answers
  if (estimate) console.print(`\n${estimateTable(estimate, maxUsd, console.colors)}\n`);
}

/** Failures that mean the run's input was wrong. */
const INPUT_FAILURES: readonly (string | null)[] = ['BadRunInput'];

/** Prints the end of a run and returns the exit code. */
export function reportEnd(report: RunReport, console: Console, failOnReject: boolean): number {
  const exitCode = codeOf(report, failOnReject);
  console.result({ ...report, exitCode });
  console.print(`\n${finalText(report, console.colors)}`);
  return exitCode;
}

function codeOf({ outcome, failure }: RunReport, failOnReject: boolean): number {
  if (failure) return INPUT_FAILURES.includes(failure.type) ? EXIT.badInput : EXIT.failed;
  return outcome === null ? EXIT.failed : exitCodeOf(outcome, failOnReject);
}
