import type { LostCall } from '../../core/measures/usage.ts';
import type { Reconciliation } from './books.ts';
import type { ChaosRun } from './chaos-run.ts';
import type { Check } from './checks.ts';
import { LIMITS } from './quickstart.ts';

/** What is promised of lost calls: few, and each booked at the most that it may have cost. */
export function lostChecks(run: ChaosRun, { lostCarriedOut, lostNotCarriedOut }: Reconciliation): Check[] {
  const { lost, usage, trials } = run.books;
  const hits = run.kills.filter(({ target }) => target === 'trainer').length;
  const excess = trials.filter(({ summary, attempts }) => lostOf(lost, summary.trialId) > attempts - 1 + hits);
  const wrongly = lost.filter((call) => call.kind === 'sample' && call.sampledTokens !== reservedTokens(call));
  const { student_sample: student = 0, teacher_sample: teacher = 0, student_train: trained = 0 } = usage.meters;
  const sampledLost = sum(lost.map(({ sampledTokens }) => sampledTokens));
  const trainedLost = sum(lost.filter(({ kind }) => kind === 'train').map(({ promptTokens }) => promptTokens));
  return [
    {
      check: 'lost calls a killed trial',
      expected: 'at most 1 for each kill that hit it',
      found: `${lost.length} in all (${lostCarriedOut} carried out, ${lostNotCarriedOut} not)${excess.length === 0 ? '' : `; more in ${excess.map(({ summary }) => summary.trialId).join(', ')}`}`,
      ok: excess.length === 0,
    },
    {
      check: 'lost calls are booked at their reservation',
      expected: `meters = answered + lost: ${usage.sent.sampledTokens + sampledLost} sampled, ${usage.sent.trainedTokens + trainedLost} trained`,
      found: `${student + teacher} sampled, ${trained} trained${wrongly.length === 0 ? '' : `; ${wrongly.length} reserved otherwise`}`,
      ok:
        wrongly.length === 0 &&
        student + teacher === usage.sent.sampledTokens + sampledLost &&
        trained === usage.sent.trainedTokens + trainedLost,
    },
  ];
}

/** Trials that were tried again after their infrastructure failed have a suffix of their own; so have their calls. */
const lostOf = (lost: readonly LostCall[], trialId: string) => lost.filter(({ kind, of }) => kind === 'sample' && of === trialId).length;

/** What a call may sample at most: as many as one call may, or as fit into the context. */
const reservedTokens = ({ promptTokens }: LostCall) => Math.min(LIMITS.maxTokensPerCall, LIMITS.contextTokens - promptTokens);

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
