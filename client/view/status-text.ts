import type { MetricsRow } from '../../core/measures/metrics-row.ts';
import { lostCalls } from '../../core/measures/usage.ts';
import { branchText } from '../../core/run/branch.ts';
import type { Check } from '../../core/run/results.ts';
import type { RunStatus, TrialProgress } from '../../workflows/messages.ts';
import type { Colors } from '../console.ts';
import { type Failure, isCancel } from '../failure.ts';
import type { HeldUp } from '../held-up.ts';
import { evaluationsTable, interimTable } from './evaluations-table.ts';
import { count } from './format.ts';
import { liveLines } from './live.ts';
import { rowsTable } from './rows-table.ts';
import { spendTable } from './spend-table.ts';
import { verdictLines } from './verdict-text.ts';

/** A run at one moment, in full: what `stillroom status` prints. `failure` is why it ended, if it failed. */
export type StatusReport = {
  readonly status: RunStatus;
  readonly rows: readonly MetricsRow[];
  /** Of the trials that are under way; null where none are. */
  readonly progress: TrialProgress | null;
  readonly heldUp: readonly HeldUp[];
  readonly failure: Failure | null;
};

/** The blocks of a run's status, a blank line between them: what it is, where it stands, what it learned, what it cost, who decided. Empty ones are left out. */
export function statusText({ status, rows, progress, heldUp, failure }: StatusReport, colors: Colors): string {
  const { student, teacher, agent, branch, checks, evaluations, interim, verdict, decisions, spend, usage } = status;
  const blocks = [
    `${colors.bold(status.runId)}${agent ? `: ${agent}, student ${student}, teacher ${teacher}` : ''}`,
    ...(branch ? [`started from ${branchText(branch)}`] : []),
    ...(failure ? [isCancel(failure) ? colors.yellow('cancelled') : colors.red(`failed (${failure.type}): ${failure.message}`)] : []),
    liveLines({ status, progress, heldUp, trouble: null }, colors).join('\n'),
    checks.map((check) => checkLine(check, colors)).join('\n'),
    rowsTable(rows, colors),
    ...(evaluations.length > 0 ? [evaluationsTable(evaluations, colors)] : []),
    ...(interim.length > 0 ? [interimTable(interim, colors)] : []),
    ...(verdict ? [verdictLines(verdict, colors).join('\n')] : []),
    spendTable(spend, colors),
    lostLine(usage),
    decisions.map(decisionLine).join('\n'),
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** Empty when nothing was lost. */
function lostLine(usage: RunStatus['usage']): string {
  const lost = lostCalls(usage);
  const calls = lost === 1 ? '1 call' : `${count(lost)} calls`;
  return lost === 0 ? '' : `${calls} without a recorded answer, in the spend with all they could have cost`;
}

const checkLine = ({ name, ok, detail }: Check, colors: Colors) => `${ok ? colors.green('ok  ') : colors.red('FAIL')} ${name}: ${detail}`;

function decisionLine({ message, answer, by, via, at, reason, refusal }: RunStatus['decisions'][number]): string {
  const what = `${message}${answer === null ? '' : ` ${answer}`}`;
  return `${at} ${what} by ${by} (says ${via})${reason ? `: ${reason}` : ''}${refusal ? ` · NOT APPLIED: ${refusal}` : ''}`;
}
