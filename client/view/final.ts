import type { Colors } from '../console.ts';
import { evaluationsTable } from './evaluations-table.ts';
import type { RunReport } from './report.ts';
import { spendText } from './spend-text.ts';
import { verdictLines } from './verdict-text.ts';
import { wallTable } from './wall-table.ts';

/** The end of a run for a person: what it came to, the held-out table, the gate's evidence, where things are, and the time. */
export function finalText(report: RunReport, colors: Colors): string {
  const blocks = [
    outcomeLine(report, colors),
    ...(report.notices.length > 0 ? [report.notices.map((notice) => `note: ${notice}`).join('\n')] : []),
    ...(report.evaluations.length > 0 ? [evaluationsTable(report.evaluations, colors)] : []),
    ...(report.verdict ? [verdictLines(report.verdict, colors).join('\n')] : []),
    places(report, colors),
    wallTable(report.wall, colors),
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

function outcomeLine({ runId, outcome, failure }: RunReport, colors: Colors): string {
  if (failure) return colors.red(`${runId} failed (${failure.type}):\n${failure.message.replace(/^/gm, '  ')}`);
  const good = outcome === 'promoted' || outcome === 'accepted';
  return `${runId} ended: ${good ? colors.green(outcome) : colors.yellow(outcome ?? 'unknown')}`;
}

/** Adapter version and paths; only what exists. */
function places({ adapter, handoff, weights, runDir, spend }: RunReport, colors: Colors): string {
  const lines: (readonly [string, string])[] = [];
  if (adapter) lines.push(['adapter', `${adapter.name} v${adapter.version}`], ['', adapter.path]);
  if (handoff) lines.push(['handoff', handoff.path]);
  if (weights) lines.push(['sampler', weights.samplerPath], ['state', weights.statePath]);
  if (runDir) lines.push(['run folder', runDir]);
  if (spend) lines.push(['spend', spendText({ ...spend, forecastUsd: null })]);
  return lines.map(([label, text]) => `${colors.dim(label.padEnd(10))} ${text}`).join('\n');
}
