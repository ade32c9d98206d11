import type { RunSpend } from '../../workflows/messages.ts';
import type { Colors } from '../console.ts';
import { isCancel } from '../failure.ts';
import { evaluationsTable } from './evaluations-table.ts';
import type { RunReport } from './report.ts';
import { spendTable } from './spend-table.ts';
import { verdictLines } from './verdict-text.ts';
import { wallTable } from './wall-table.ts';

/** The end of a run for a person: what it came to, the held-out table, the gate's evidence, where things are, the money and the time. */
export function finalText(report: RunReport, colors: Colors): string {
  const blocks = [
    outcomeLine(report, colors),
    ...(report.notices.length > 0 ? [report.notices.map((notice) => `note: ${notice}`).join('\n')] : []),
    ...(report.evaluations.length > 0 ? [evaluationsTable(report.evaluations, colors)] : []),
    ...(report.verdict ? [verdictLines(report.verdict, colors).join('\n')] : []),
    places(report, colors),
    ...(report.spend ? [spendTable(atTheEnd(report.spend), colors)] : []),
    wallTable(report.wall, colors),
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

function outcomeLine({ runId, outcome, failure }: RunReport, colors: Colors): string {
  if (failure && isCancel(failure)) return colors.yellow(`${runId} was cancelled`);
  if (failure) return colors.red(`${runId} failed (${failure.type}):\n${failure.message.replace(/^/gm, '  ')}`);
  const good = outcome === 'promoted' || outcome === 'accepted';
  return `${runId} ended: ${good ? colors.green(outcome) : colors.yellow(outcome ?? 'unknown')}`;
}

/** Nothing is to come any more: there is nothing to forecast. */
const atTheEnd = (spend: RunSpend): RunSpend => ({ ...spend, forecastUsd: null });

/** Adapter version and paths; only what exists. */
function places({ adapter, handoff, weights, runDir }: RunReport, colors: Colors): string {
  const lines: (readonly [string, string])[] = [];
  if (adapter) lines.push(['adapter', `${adapter.name} v${adapter.version}`], ['', adapter.path]);
  if (handoff) lines.push(['handoff', handoff.path]);
  if (weights) lines.push(['sampler', weights.samplerPath], ['state', weights.statePath]);
  if (runDir) lines.push(['run folder', runDir]);
  return lines.map(([label, text]) => `${colors.dim(label.padEnd(10))} ${text}`).join('\n');
}
