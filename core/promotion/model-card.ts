import type { Evidence } from '../gate/evidence.ts';
import { isUnknown } from '../measures/spend.ts';
import { type Branch, branchText } from '../run/branch.ts';
import type { GateVerdict, SavedWeights, Spend } from '../run/results.ts';

export type CardFacts = {
  readonly name: string;
  readonly version: number;
  readonly runId: string;
  readonly plan: { readonly student: { readonly model: string }; readonly teacher: { readonly model: string } };
  /** What the run started from; null for a fresh adapter. */
  readonly branch: Branch | null;
  readonly holdout: readonly unknown[];
  readonly verdict: GateVerdict;
  readonly weights: SavedWeights;
  readonly steps: number;
  /** `maxUsd`: the cap of the run, null where there was none. */
  readonly spend: Spend & { readonly maxUsd: number | null };
};

/** What a person should know before using an adapter, in Markdown. */
export function modelCard(facts: CardFacts): string {
  const { verdict, weights, spend } = facts;
  return [
    `# ${facts.name} v${facts.version}`,
    '',
    `Distilled by run \`${facts.runId}\` in ${facts.steps} steps: \`${facts.plan.student.model}\` learned from \`${facts.plan.teacher.model}\`.`,
    ...branchLines(facts.branch),
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
    spentText(spend),
    '',
    `- sampler weights: \`${weights.samplerPath}\``,
    `- training state: \`${weights.statePath}\``,
    '',
  ].join('\n');
}

function branchLines(branch: Branch | null): string[] {
  return branch === null
    ? []
    : [`It started from trained weights: ${branchText(branch)}. \`student before\` is the base model all the same.`];
}

function spentText({ usd, lines, blindTo, maxUsd }: CardFacts['spend']): string {
  const spent = isUnknown({ lines, blindTo }) ? 'an unknown amount' : `$${usd.toFixed(4)}`;
  const cap = maxUsd === null ? 'without a cap' : `under a cap of $${maxUsd.toFixed(2)}`;
  const unseen =
    blindTo.length === 0
      ? ''
      : `, ${maxUsd === null ? 'not counting' : 'which could not see'} meters without a price: ${blindTo.join(', ')}`;
  return `Spent ${spent} ${cap}${unseen}.`;
}

const percent = (rate: number | null) => (rate === null ? 'not measured' : `${(rate * 100).toFixed(1)} %`);

const evidence = (found: Evidence | null) =>
  found === null
    ? 'not measured'
    : `${signed(found.mean)} points (${found.confidence * 100} % interval ${signed(found.interval.low)} to ${signed(found.interval.high)}, p = ${found.pValue.toFixed(4)}, ${found.n} tasks)`;

const signed = (difference: number) => `${difference >= 0 ? '+' : '−'}${Math.abs(difference * 100).toFixed(1)}`;
