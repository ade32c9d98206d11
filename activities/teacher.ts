import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { BlobRef, TrialId } from '../core/ids.ts';
import { scoringMeters } from '../core/measures/billing.ts';
import type { MeterTokens } from '../core/measures/meters.ts';
import type { EpisodeScore } from '../core/run/trial.ts';
import { buildDatums } from '../core/tokens/datums.ts';
import { decodeEpisode } from '../core/tokens/episode-codec.ts';
import { encodeScoredEpisode } from '../core/tokens/scored-codec.ts';
import type { Datum } from '../core/tokens/span.ts';
import { keepTeacherRow } from '../core/tokens/teacher-row.ts';
import { TokenError } from '../core/tokens/token-error.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { whileBeating } from './beating.ts';
import type { ModelAccess } from './model-access.ts';
import type { RunRecords } from './run-records.ts';

export type ScoreOrder = {
  readonly run: BlobRef;
  readonly trialId: TrialId;
  readonly spans: BlobRef;
  readonly stopReason: string | null;
  /** The weights the batch was sampled from; a span of any other is refused. */
  readonly sampler: string;
};

export type TeacherDeps = { readonly records: RunRecords; readonly blobs: BlobStore; readonly models: ModelAccess };
export type TeacherActivities = ReturnType<typeof createTeacherActivities>;

export function createTeacherActivities({ records, blobs, models }: TeacherDeps) {
  return {
    /** Turns one episode into training sequences and has the teacher score the exact tokens the student sampled. */
    async scoreEpisode(order: ScoreOrder): Promise<EpisodeScore> {
      const { config } = await records.load(order.run);
      const episode = { ...decodeEpisode(await blobs.get(order.spans)), stopReason: order.stopReason };
      const foreign = episode.spans.find((span) => span.sampler !== order.sampler);
      if (foreign)
        throw ApplicationFailure.nonRetryable(
          `trial ${order.trialId}, call ${foreign.callIndex}: sampled from ${foreign.sampler}, but this batch trains on ${order.sampler}`,
          'ForeignSampler',
        );
      const { datums, stats } = buildDatums([episode], {
        contextBudgetTokens: config.rollout.context_budget_tokens,
        maxDatumTokens: config.train.max_datum_tokens,
      });
      const scored = await whileBeating(() => score(datums, config.teacher.model, models));
      return {
        trialId: order.trialId,
        scored: datums.length > 0 ? await blobs.put(encodeScoredEpisode({ trial: order.trialId, datums, rows: scored.rows })) : null,
        datums: stats.datums,
        fragments: stats.fragments,
        lossTokens: stats.lossTokens,
        overflowDropped: stats.overflowDrops > 0,
        overlongDropped: stats.overlongDrops > 0,
        meters: scored.meters,
      };
    },
  };
}

async function score(
  datums: readonly Datum[],
  teacher: string,
  models: ModelAccess,
): Promise<{ rows: Float64Array[]; meters: MeterTokens }> {
  const model = { kind: 'base', model: teacher, version: teacher } as const;
  const signal = cancellationSignal();
  const scored = await Promise.all(
    datums.map((datum) => models.withSampler(model, (sampler) => sampler.promptLogprobs(datum.tokens, { signal }))),
  );
  const rows = datums.map((datum, index) => kept(datum, scored[index]?.logprobs ?? []));
  const meters = scoringMeters(
    scored.map(({ logprobs, promptCacheHitTokens }) => ({ tokens: logprobs.length, cacheHits: promptCacheHitTokens })),
  );
  return { rows, meters: { ...meters, teacher_sample: scored.length } }; // scoring a prompt pays for one sampled token
}

function kept(datum: Datum, logprobs: ArrayLike<number | null>): Float64Array {
  try {
    return keepTeacherRow(datum, logprobs);
  } catch (error) {
    if (error instanceof TokenError) throw ApplicationFailure.nonRetryable(error.message, 'TeacherRowUnusable');
    throw error;
  }
}
