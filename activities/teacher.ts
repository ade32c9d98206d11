import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { RunConfig } from '../core/config/index.ts';
import type { BlobRef, TrialId } from '../core/ids.ts';
import { scoringMeters } from '../core/measures/billing.ts';
import { spendOf } from '../core/measures/spend.ts';
import { NOTHING_SENT, type Usage } from '../core/measures/usage.ts';
import { trainingPasses } from '../core/money/trial-limit.ts';
import { teacherOf } from '../core/run/models.ts';
import type { EpisodeScore, ModelRef } from '../core/run/trial.ts';
import { buildDatums, datumLimits } from '../core/tokens/datums.ts';
import { decodeEpisode } from '../core/tokens/episode-codec.ts';
import { refuseForeign } from '../core/tokens/foreign-sampler.ts';
import { encodeScoredEpisode } from '../core/tokens/scored-codec.ts';
import type { Datum } from '../core/tokens/span.ts';
import { keepTeacherRow } from '../core/tokens/teacher-row.ts';
import { TokenError } from '../core/tokens/token-error.ts';
import type { TopkRow } from '../core/tokens/topk.ts';
import { encodeTopkRows } from '../core/tokens/topk-codec.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { TOPK_MASK, type TopkTable } from '../services/tinker/index.ts';
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
      const { config, runId } = await records.load(order.run);
      const episode = { ...decodeEpisode(await blobs.get(order.spans)), stopReason: order.stopReason };
      namingFailure('ForeignSampler', () => refuseForeign(episode, order.sampler));
      const { datums, stats } = buildDatums([episode], datumLimits(config));
      const { trialId } = order;
      const topK = config.train.loss === 'topk_ce' ? config.train.topk : 0;
      const scored = await whileBeating(() => score(datums, topK, teacherOf(config.teacher), models), models.longestWait);
      const { rows, candidates } = scored;
      const isEmpty = datums.length === 0;
      const kept = blobs.of(runId);
      return {
        trialId,
        scored: isEmpty ? null : await kept.put(encodeScoredEpisode({ trial: trialId, datums, rows })),
        candidates: isEmpty || topK === 0 ? null : await kept.put(encodeTopkRows(trialId, datums, candidates)),
        datums: stats.datums,
        fragments: stats.fragments,
        lossTokens: stats.lossTokens,
        overflowDropped: stats.overflowDrops > 0,
        overlongDropped: stats.overlongDrops > 0,
        ...scored.usage,
        usd: spendOf(config.pricing, scored.usage.meters).usd,
        trainUsd: trainingUsd(config, datums),
      };
    },
  };
}

/** Every sequence may be dropped yet, but none is sent longer or more often. */
function trainingUsd({ pricing, train }: RunConfig, datums: readonly Datum[]): number {
  const tokens = datums.reduce((sum, datum) => sum + datum.tokens.length, 0);
  return spendOf(pricing, { student_train: tokens * trainingPasses(train) }).usd;
}

async function score(
  datums: readonly Datum[],
  topK: number,
  teacher: ModelRef,
  models: ModelAccess,
): Promise<{ rows: Float64Array[]; candidates: TopkRow[]; usage: Usage }> {
  const signal = cancellationSignal();
  const scored = await Promise.all(
    datums.map((datum) => models.withSampler(teacher, (sampler) => sampler.promptLogprobs(datum.tokens, { topK, signal }))),
  );
  return {
    rows: datums.map((datum, index) => namingFailure('TeacherRowUnusable', () => keepTeacherRow(datum, scored[index]?.logprobs ?? []))),
    candidates: scored.flatMap(({ topk }) => (topk ? [asTopkRow(topk)] : [])),
    usage: {
      meters: scoringMeters(
        scored.map(({ logprobs, promptCacheHitTokens }) => ({ tokens: logprobs.length, cacheHits: promptCacheHitTokens })),
      ),
      sent: { ...NOTHING_SENT, scoredTokens: datums.reduce((sum, { tokens }) => sum + tokens.length, 0) },
      lost: [],
    },
  };
}

/** The service's table as columns; its padding, which comes after the candidates of a position, counts for nothing. */
function asTopkRow({ k, length, tokenIds, logprobs }: TopkTable): TopkRow {
  const counts = Int32Array.from({ length }, (_, p) => {
    const padding = logprobs.subarray(p * k, (p + 1) * k).findIndex((logprob) => logprob <= TOPK_MASK);
    return padding < 0 ? k : padding;
  });
  return { width: k, counts, tokens: tokenIds, logprobs: Float64Array.from(logprobs) };
}

/** Runs a check of token data; what it refuses is refused for good, under this name. */
function namingFailure<T>(name: 'ForeignSampler' | 'TeacherRowUnusable', check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof TokenError) throw ApplicationFailure.nonRetryable(error.message, name);
    throw error;
  }
}
