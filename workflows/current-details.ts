import type { MetricsRow } from '../core/measures/metrics-row.ts';
import { isUnknown } from '../core/measures/spend.ts';
import type { Wait } from '../core/run/phase.ts';
import { type CheckpointSummary, summaryOf } from '../core/training/checkpoint-view.ts';
import type { RunSpend } from './messages.ts';
import { pinsIn, type RunFacts } from './run-state.ts';

/** Steps that the table shows, the newest last. */
const ROWS_SHOWN = 5;

/** A run at one moment, as Markdown for the Web UI and `temporal workflow metadata`. */
export function currentDetails(facts: RunFacts, wait: Wait | null, spend: RunSpend): string {
  const cap = spend.maxUsd === null ? 'no cap' : `cap $${spend.maxUsd.toFixed(2)}`;
  const setAside = spend.reservedUsd > 0 ? `, up to $${spend.reservedUsd.toFixed(4)} set aside for trials under way` : '';
  const uncounted =
    spend.blindTo.length > 0
      ? `, without prices and so not counted${spend.maxUsd === null ? '' : ', nor seen by the cap'}: ${spend.blindTo.join(', ')}`
      : '';
  const parts = [
    `**${facts.outcome ?? facts.phase}** · step ${facts.step} of ${facts.pinned?.plan.steps ?? '?'}`,
    ...(facts.phase === 'warmup' && facts.warmup
      ? [`Warm-up: ${facts.warmup.updates} of ${facts.pinned?.plan.warmup.steps ?? '?'} updates`]
      : []),
    ...(wait ? [`Waits for **${wait.id}**: ${wait.question}`, ...wait.answers.map(commandBlock)] : []),
    `Spent ${isUnknown(spend) ? 'an unknown amount' : `$${spend.usd.toFixed(4)}`} (${cap})${setAside}${uncounted}`,
    ...livesOf(summaryOf(facts.ledger, pinsIn(facts), Date.now())),
    ...(facts.rows.length > 0 ? [rowsBlock(facts.rows.slice(-ROWS_SHOWN))] : []),
    ...facts.notices.map((notice) => `> ${notice}`),
  ];
  return withoutFormulas(parts.join('\n\n'));
}

/** What of the run's checkpoints has an end; nothing where none has. */
function livesOf({ firstEnd, warning }: CheckpointSummary): string[] {
  if (warning !== null) return [`**Checkpoints**: ${warning}`];
  return firstEnd === null ? [] : [`Checkpoints: ${firstEnd.name} (${firstEnd.kind}) lives until ${firstEnd.at} and is renewed before`];
}

/** The Web UI takes the text between two dollar signs for a formula. */
const withoutFormulas = (text: string) => text.replace(/\$(?=\d)/g, 'USD ');

/** One option a line: the Web UI cuts long lines of code off. A shell takes it as it stands. */
const commandBlock = (command: string) => codeBlock(command.split(' --').join(' \\\n  --'));

/** Aligned text, since the Web UI sets the columns of a Markdown table without space between them. */
function rowsBlock(rows: readonly MetricsRow[]): string {
  const head = ['step', 'solved', 'KL nats/token', 'entropy'];
  const cells = rows.map((row) => [
    `${row.step}`,
    `${row.passed_trials}/${row.executed_trials}`,
    number(row.reverse_kl_per_token),
    number(row.entropy_per_token),
  ]);
  const widths = head.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  ');
  return codeBlock([head, ...cells].map(line).join('\n'));
}

const number = (value: number | null) => (value === null ? '–' : value.toFixed(3));

const codeBlock = (text: string) => text.replace(/^/gm, '    ');
