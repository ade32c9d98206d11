import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { MetricsRow } from '../core/measures/metrics-row.ts';
import type { SentTokens, Usage } from '../core/measures/usage.ts';
import type { Branch } from '../core/run/branch.ts';
import {
  type DecidePromotion,
  type Decision,
  type DecisionRecord,
  MESSAGES,
  type MessageName,
  type SetBudget,
  type SweepCheckpoints,
} from '../core/run/decision.ts';
import type { Outcome, Phase, Wait } from '../core/run/phase.ts';
import type { AdapterRecord, Check, Estimate, EvalResult, GateVerdict, Handoff, SavedWeights, Spend } from '../core/run/results.ts';
import type { CheckpointSummary, CheckpointsView } from '../core/training/checkpoint-view.ts';
import type { ResumePoint } from '../core/training/checkpoints.ts';

/** Answers to a run. Each is an update, which replies with the recorded decision or the reason it was refused. */
export const confirmCostUpdate = defineUpdate<DecisionRecord, [Decision]>('confirmCost');
export const declineCostUpdate = defineUpdate<DecisionRecord, [Decision]>('declineCost');
export const setBudgetUpdate = defineUpdate<DecisionRecord, [SetBudget]>('setBudget');
export const continueAnywayUpdate = defineUpdate<DecisionRecord, [Decision]>('continueAnyway');
export const decidePromotionUpdate = defineUpdate<DecisionRecord, [DecidePromotion]>('decidePromotion');
export const pauseUpdate = defineUpdate<DecisionRecord, [Decision]>('pause');
export const resumeUpdate = defineUpdate<DecisionRecord, [Decision]>('resume');
export const stopUpdate = defineUpdate<DecisionRecord, [Decision]>('stop');

/** Deletes checkpoints that a run does not need; answers with the ledger as it is after it. */
export const sweepCheckpointsUpdate = defineUpdate<CheckpointsView, [SweepCheckpoints]>('sweepCheckpoints');

/** Signal twins for tools that can only signal: same names, and two short forms. */
export const SIGNAL_TWINS: readonly (readonly [signal: string, message: MessageName])[] = [
  ...MESSAGES.map((name) => [name, name] as const),
  ['confirm', 'confirmCost'],
  ['promote', 'decidePromotion'],
];
export const signalNamed = (name: string) => defineSignal<[unknown]>(name);
export const updateNamed = (name: MessageName) => defineUpdate<DecisionRecord, [unknown]>(name);

export const statusQuery = defineQuery<RunStatus>('status');
export const estimateQuery = defineQuery<Estimate | null>('estimate');
export const metricsQuery = defineQuery<RunMetrics>('metrics');
/** What the run saved, how long it lives, and what a sweep would delete; without `keepLast` by the config's. */
export const checkpointsQuery = defineQuery<CheckpointsView, [{ readonly keepLast?: number }?]>('checkpoints');
export const spendQuery = defineQuery<RunSpend>('spend');

/** The run's cap in USD, told to a child while it runs; null where there is none any more. */
export const capSignal = defineSignal<[number | null]>('cap');

/** Progress of a step or an evaluation, asked of the child itself while it runs. */
export const progressQuery = defineQuery<TrialProgress>('progress');

export type TrialProgress = {
  readonly label: string;
  readonly trials: number;
  readonly done: number;
  readonly running: number;
  readonly executed: number;
  readonly passed: number;
  readonly infraFailed: number;
  /** Failures one after the other for one cause, with the words of the last; null when the last trial was executed. */
  readonly failing: { readonly inARow: number; readonly words: string } | null;
  /** What the run has paid so far, these trials included, and what is set aside for them and the training on them. USD, as far as there are prices. */
  readonly spentUsd: number;
  readonly reservedUsd: number;
};

export type RunStatus = {
  readonly runId: string;
  readonly phase: Phase;
  readonly waitingFor: Wait | null;
  readonly outcome: Outcome | null;
  readonly step: number;
  readonly steps: number;
  readonly student: string | null;
  readonly teacher: string | null;
  readonly agent: string | null;
  readonly runDir: string | null;
  /** What it started from; null for a fresh adapter. */
  readonly branch: Branch | null;
  readonly child: { readonly workflowId: string; readonly label: string } | null;
  readonly checks: readonly Check[];
  readonly evaluations: readonly EvalResult[];
  /** The newest interim evaluations, on training tasks; the run folder has all. */
  readonly interim: readonly EvalResult[];
  readonly lastRow: MetricsRow | null;
  /** Null where no warm-up is planned. */
  readonly warmup: { readonly updates: number; readonly steps: number; readonly lossNatsPerToken: number | null } | null;
  readonly verdict: GateVerdict | null;
  readonly adapter: AdapterRecord | null;
  readonly handoff: Handoff | null;
  readonly weights: SavedWeights | null;
  /** Where training could go on from; after a degeneration, weights from before it. */
  readonly resume: Pick<ResumePoint, 'latest' | 'restoreFrom'>;
  /** What it saved on the service, in short; the query `checkpoints` has it all. */
  readonly checkpoints: CheckpointSummary;
  readonly spend: RunSpend;
  /** What the run took of the services, call by call: its tokens as they were sent, and the calls whose answers were lost. */
  readonly usage: Usage;
  readonly decisions: readonly DecisionRecord[];
  readonly notices: readonly string[];
  /** Wall time by part, in ms. */
  readonly wallMs: Readonly<Record<string, number>>;
};

export type RunSpend = Spend & {
  readonly maxUsd: number | null;
  readonly forecastUsd: number | null;
  /** What is set aside at most for trials that run now, in USD; the child's own \`progress\` has the exact sum. */
  readonly reservedUsd: number;
  /** Tokens as they were sent and came back, whatever of them is billed as cached. */
  readonly sent: SentTokens;
  /** Calls whose answer was lost with their worker; they are booked at their reservation. */
  readonly lostCalls: number;
};

export type RunMetrics = { readonly rows: readonly MetricsRow[]; readonly rowsInAll: number; readonly file: string | null };

/** What `tidyCheckpoints` takes: paths to look at and paths to delete. */
export type TidyOrder = { readonly look: readonly string[]; readonly remove: readonly string[] };

/** What `distill` returns. */
export type RunResult = {
  readonly outcome: Outcome;
  readonly runId: string;
  readonly verdict: GateVerdict | null;
  readonly adapter: AdapterRecord | null;
  readonly handoff: Handoff | null;
  readonly weights: SavedWeights | null;
  /** Where training could go on from; after a degeneration, weights from before it. */
  readonly resume: Pick<ResumePoint, 'latest' | 'restoreFrom'>;
  readonly evaluations: readonly EvalResult[];
  readonly spend: RunSpend;
};
