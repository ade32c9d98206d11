import type { Fault, TrialSummary } from './trial.ts';

/** Infra-failed trials one after the other, all for one cause; the newest of them is told. */
export type Streak = {
  /** What two failures share that are the same. */
  readonly cause: string;
  readonly inARow: number;
  readonly trialId: string;
  readonly taskId: string;
  readonly fault: Fault | null;
  /** The newest failure's own words, cut. */
  readonly words: string;
};

type Ended = Pick<TrialSummary, 'trialId' | 'taskId' | 'executed' | 'exceptionType' | 'exceptionMessage' | 'fault'>;

const WORDS_KEPT = 300;

/** The streak after one more trial of a batch has ended; null when that one was executed. */
export function nextStreak(streak: Streak | null, trial: Ended): Streak | null {
  if (trial.executed) return null;
  const { trialId, taskId, fault } = trial;
  const cause = causeOf(trial);
  const inARow = streak?.cause === cause ? streak.inARow + 1 : 1;
  const words = (trial.exceptionMessage ?? trial.exceptionType ?? 'no trial says why').slice(0, WORDS_KEPT);
  return { cause, inARow, trialId, taskId, fault: fault ?? null, words };
}

/** What a failure has in common with others of its kind: its exception and its words, but for names, numbers, ids and paths. */
export function causeOf({ trialId, taskId, exceptionType, exceptionMessage }: Omit<Ended, 'executed' | 'fault'>): string {
  const words = (exceptionMessage ?? '')
    .replaceAll(trialId, '<trial>')
    .replaceAll(taskId, '<task>')
    .replace(/(?:[\w.:@~-]*\/)+[\w.@~-]*/g, '<path>')
    .replace(/\b[0-9a-f-]*\d[0-9a-f-]*\b/gi, '<n>')
    .replace(/\d+/g, '<n>')
    .replace(/\s+/g, ' ')
    .trim();
  return `${exceptionType ?? 'no exception'}: ${words}`.slice(0, WORDS_KEPT);
}

/** Where to look, by who broke the trials. */
const LOOK_AT: Readonly<Record<Fault, string>> = {
  agent: "Look at the agent: its harness document, and the trial's agent/ folder.",
  budget: 'Look at the limits (rollout.episode_timeout_s, rollout.context_budget_tokens), and at the grader, which gave no reward either.',
  grader: "Look at the task's grader: tests/test.sh must write a reward, under harbor.reward_key, for whatever the agent leaves.",
  sandbox: 'Look at the sandboxes: `stillroom doctor` says what works here; then the environment in harbor.job_template.',
  model: 'Look at the way to the model: the key, the model name, and whether the service answers.',
  us: 'Look at harbor and the workers: `stillroom doctor`, and the log of the rollout workers.',
};

/** Why a batch stops early, for a person: the cause, how often, one trial, and what to do. */
export function sameCauseText(label: string, { inARow, words, trialId, taskId, fault }: Streak): string {
  const advice = fault === null ? 'Look at that trial.' : LOOK_AT[fault];
  return `${label}: ${inARow} trials in a row failed for the same cause, so no more are started: ${words}\nThe last was trial ${trialId} of task ${taskId}. ${advice} Then start the run again, from its last checkpoint if it has one. harbor.same_cause_failures says how many in a row end a run; 0 never does.`;
}

/** How many failures in a row for one cause end a run unless its config says: more than can run at once, for one passing event breaks them all. */
export function usualSameCauseFailures(trialsAtOnce: number): number {
  return Math.max(8, trialsAtOnce + 1);
}
