import type { MeterTokens } from '../../core/measures/meters.ts';
import type { LostCall, Usage } from '../../core/measures/usage.ts';
import type { Reconciliation } from './books.ts';
import type { ChaosRun } from './chaos-run.ts';
import type { Check } from './checks.ts';
import { LIMITS } from './quickstart.ts';

/** What is promised of lost calls: few, and each booked at the most that it may have cost. */
export function lostChecks(run: ChaosRun, { lostCarriedOut, lostNotCarriedOut }: Reconciliation): Check[] {
  const { lost, trials } = run.books;
  const hits = run.kills.filter(({ target }) => target === 'trainer').length;
  const most = (attempts: number) => attempts - 1 + hits;
  const tooMany = trials.filter(({ summary, attempts }) => samplesOf(lost, summary.trialId).length > most(attempts));
  const wrong = bookedWrongly(run);
  const names = tooMany.map(({ summary }) => summary.trialId);
  return [
    {
      check: 'lost calls a killed trial',
      expected: 'at most 1 for each kill that hit it',
      found: [`${lost.length} in all (${lostCarriedOut} carried out, ${lostNotCarriedOut} not)`, ...names].join('; more: '),
      ok: tooMany.length === 0,
    },
    {
      check: 'lost calls are booked at their reservation',
      expected: 'meters = answered + the most that was lost',
      found: wrong.length === 0 ? `so in ${trials.length} trials, their scores and all training` : wrong.slice(0, 5).join('; '),
      ok: wrong.length === 0,
    },
  ];
}

/** Work whose meters are not what its answered and lost calls come to. The one token that a score samples is on no meter. */
function bookedWrongly({ books: { trials, scores, usage, lost } }: ChaosRun): string[] {
  const sampling = trials.flatMap(({ summary }) =>
    differs(
      summary.trialId,
      'sampled',
      meter(summary, 'student_sample', 'teacher_sample'),
      summary.sent.sampledTokens,
      sampledIn(summary.lost),
    ),
  );
  const scoring = scores.flatMap((score) =>
    differs(
      score.trialId,
      'scored',
      meter(score, 'teacher_prefill', 'teacher_cached_prefill'),
      score.sent.scoredTokens,
      inputsOf(score.lost),
    ),
  );
  const training = lost.filter(({ kind }) => kind === 'train');
  return [
    ...sampling,
    ...scoring,
    ...differs('training', 'trained', meter(usage, 'student_train'), usage.sent.trainedTokens, inputsOf(training)),
    ...lost.flatMap((call) =>
      call.kind === 'sample' && call.sampledTokens !== reserved(call) ? [`${call.of} call ${call.callIndex}`] : [],
    ),
  ];
}

function differs(of: string, what: string, metered: number, answered: number, lost: number): string[] {
  return metered === answered + lost ? [] : [`${of}: ${metered} ${what}, answered ${answered}, lost ${lost}`];
}

const samplesOf = (lost: readonly LostCall[], trialId: string) => lost.filter(({ kind, of }) => kind === 'sample' && of === trialId);

/** What a call may sample at most: as many as one call may, or as fit into the context. */
const reserved = ({ promptTokens }: LostCall) => Math.min(LIMITS.maxTokensPerCall, LIMITS.contextTokens - promptTokens);

const meter = ({ meters }: Pick<Usage, 'meters'>, ...names: readonly (keyof MeterTokens)[]) =>
  names.reduce((sum, name) => sum + (meters[name] ?? 0), 0);
const sampledIn = (lost: readonly LostCall[]) => lost.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0);
const inputsOf = (lost: readonly LostCall[]) => lost.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
