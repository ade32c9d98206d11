import type { Evidence } from '../gate/evidence.ts';
import type { GateVerdict, SavedWeights, Spend } from '../run/results.ts';

export type CardFacts = {
  readonly name: string;
  readonly version: number;
  readonly runId: string;
  readonly plan: { readonly student: { readonly model: string }; readonly teacher: { readonly model: string } };
  readonly holdout: readonly unknown[];
  readonly verdict: GateVerdict;
  readonly weights: SavedWeights;
  readonly steps: number;
  readonly spend: Spend;
};

/** What a person should know before using an adapter, in Markdown. */
export function modelCard(facts: CardFacts): string {
  const { verdict, weights, spend } = facts;
  return [
    `# ${facts.name} v${facts.version}`,
    '',
    `Distilled by run \`${facts.runId}\` in ${facts.steps} steps: \`${facts.plan.student.model}\` learned from \`${facts.plan.teacher.model}\`.`,
    '',
    `| held-out solve rate | |`,
    `|---|---|`,
    `| teacher | ${percent(verdict.teacher)} |`,
    `| student before | ${percent(verdict.before)} |`,
    `| student after | ${percent(verdict.after)} |`,
    '',
    `Gate: ${verdict.accepted ? 'accepted' : `rejected (${verdict.reasons.join(', ')})`}, threshold ${percent(verdict.threshold)}, ${facts.holdout.length} held-out tasks.`,
    `After − before: ${evidence(verdict.improvement)}.`,
    `Over the threshold: ${evidence(verdict.overThreshold)} (information only).`,
    `Evaluation protocol \`${verdict.protocolHash.slice(0, 12)}\`, ${verdict.earlierGates} gates before this one on the same protocol.`,
    '',
    `Spent $${spend.usd.toFixed(4)}${spend.blindTo.length > 0 ? `, not counting meters without a price: ${spend.blindTo.join(', ')}` : ''}.`,
    '',
    `- sampler weights: \`${weights.samplerPath}\``,
    `- training state: \`${weights.statePath}\``,
    '',
  ].join('\n');
}

const percent = (rate: number | null) => (rate === null ? 'not measured' : `${(rate * 100).toFixed(1)} %`);

const evidence = (found: Evidence | null) =>
  found === null
    ? 'not measured'
    : `${signed(found.mean)} points (${found.confidence * 100} % interval ${signed(found.interval.low)} to ${signed(found.interval.high)}, p = ${found.pValue.toFixed(4)}, ${found.n} tasks)`;

const signed = (difference: number) => `${difference >= 0 ? '+' : '−'}${Math.abs(difference * 100).toFixed(1)}`;
