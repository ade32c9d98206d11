import pLimit from 'p-limit';
import { z } from 'zod';
import type { RunConfig } from '../core/config/index.ts';
import { type BlobRef, BlobRefText } from '../core/ids.ts';
import { at } from '../core/lists.ts';
import { teacherOf } from '../core/run/models.ts';
import type { Trajectory } from '../core/run/warm-up.ts';
import { countTokens, datumLimits } from '../core/tokens/datums.ts';
import { decodeEpisode } from '../core/tokens/episode-codec.ts';
import { refuseForeign } from '../core/tokens/foreign-sampler.ts';
import type { Datum, Episode } from '../core/tokens/span.ts';
import { TokenError } from '../core/tokens/token-error.ts';
import { type KeptTrajectory, keptTrajectories, warmupDatums } from '../core/training/warm-up.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';

/** Which episodes the training sequences of a warm-up come from, in order: the first `datums` sequences are those of the first episode, and so on. */
export type SetIndex = readonly { readonly spans: BlobRef; readonly datums: number }[];
export const SetIndex: z.ZodType<SetIndex> = z.array(z.strictObject({ spans: BlobRefText, datums: z.int().min(1) }));

/** The sequences of a warm-up, by episode, and how they came about. Counts are over all episodes that were kept. */
export type BuiltSet = {
  readonly index: SetIndex;
  readonly kept: number;
  readonly datums: number;
  readonly lossTokens: number;
  readonly contextTokens: number;
  /** Sampled tokens without a usable log-probability; they carry no loss. */
  readonly maskedTokens: number;
  readonly overflowDrops: number;
  readonly overlongDrops: number;
  readonly firstTokenDrops: number;
};

/** Trajectories that leave nothing to train on; the message says what to change. */
export class NothingToWarmUpOn extends Error {
  override readonly name = 'NothingToWarmUpOn';
}

/** Episodes that are read and merged at once. */
const READERS = 8;

/**
 * Reads the kept episodes and counts their training sequences. @throws NothingToWarmUpOn when there are none, `TokenError` for an
 * episode that was not sampled from the run's teacher, and what the store throws for a blob that is missing or damaged.
 */
export async function buildWarmupSet(trajectories: readonly Trajectory[], config: RunConfig, blobs: BlobStore): Promise<BuiltSet> {
  const kept = keptTrajectories(trajectories, config.warmup.keep);
  const parts = await pLimit(READERS).map(kept, async (trajectory) => {
    const { datums, stats, firstTokenDrops } = warmupDatums(await teacherEpisode(trajectory, config, blobs), datumLimits(config));
    return { spans: trajectory.spans, datums: datums.length, ...countTokens(datums), stats, firstTokenDrops };
  });
  const sum = (count: (part: (typeof parts)[number]) => number) => parts.reduce((total, part) => total + count(part), 0);
  const built: BuiltSet = {
    index: parts.filter(({ datums }) => datums > 0).map(({ spans, datums }) => ({ spans, datums })),
    kept: kept.length,
    datums: sum(({ datums }) => datums),
    lossTokens: sum(({ lossTokens }) => lossTokens),
    contextTokens: sum(({ contextTokens }) => contextTokens),
    maskedTokens: sum(({ stats }) => stats.maskedTokens),
    overflowDrops: sum(({ stats }) => stats.overflowDrops),
    overlongDrops: sum(({ stats }) => stats.overlongDrops),
    firstTokenDrops: sum(({ firstTokenDrops }) => firstTokenDrops),
  };
  if (built.datums === 0) throw new NothingToWarmUpOn(whyEmpty(trajectories, built, config));
  return built;
}

/** The sequences at these places of the set, in the order of the places. */
export async function datumsAt(index: SetIndex, places: readonly number[], config: RunConfig, blobs: BlobStore): Promise<Datum[]> {
  const starts: number[] = [];
  let size = 0;
  for (const { datums } of index) {
    starts.push(size);
    size += datums;
  }
  const episodeOf = (place: number) => starts.findLastIndex((start) => start <= place);
  const loaded = new Map<number, readonly Datum[]>();
  await pLimit(READERS).map([...new Set(places.map(episodeOf))], async (number) => {
    const { spans, datums: counted } = at(index, number);
    const { datums } = warmupDatums(decodeEpisode(await blobs.get(spans)), datumLimits(config));
    if (datums.length !== counted)
      throw new TokenError(
        'row_count_mismatch',
        `warm-up episode ${spans}`,
        `${counted} sequences were counted, ${datums.length} are made`,
      );
    loaded.set(number, datums);
  });
  return places.map((place) => {
    const number = episodeOf(place);
    return at(loaded.get(number) ?? [], place - at(starts, number));
  });
}

async function teacherEpisode({ spans, trialId }: KeptTrajectory, { teacher }: RunConfig, blobs: BlobStore): Promise<Episode> {
  const episode = decodeEpisode(await blobs.get(spans));
  if (episode.trial !== trialId) throw new TokenError('corrupt_bytes', `trial ${trialId}`, `its spans are those of trial ${episode.trial}`);
  refuseForeign(episode, teacherOf(teacher).version);
  return episode;
}

/** The counts, from trials to sequences, and what to change where they end. */
function whyEmpty(trajectories: readonly Trajectory[], built: BuiltSet, { warmup }: RunConfig): string {
  const executed = trajectories.filter((trajectory) => trajectory.executed).length;
  const passed = trajectories.filter((trajectory) => trajectory.executed && trajectory.passed).length;
  const counts = `of ${trajectories.length} trials of the teacher ${executed} were executed and ${passed} passed; warmup.keep = "${warmup.keep}" keeps ${built.kept}`;
  if (built.kept > 0) {
    const { overflowDrops, overlongDrops, firstTokenDrops } = built;
    return `${counts}, none of which left a sequence to train on: ${overflowDrops} passed rollout.context_budget_tokens, ${overlongDrops} passed train.max_datum_tokens, ${firstTokenDrops} sequences began with a sampled token. Raise the limit`;
  }
  const remedies = [
    ...(warmup.keep === 'passed' && executed > 0 ? ['warmup.keep = "all"'] : []),
    warmup.trajectories_from === null ? 'more warmup.rollouts_per_task' : 'other warmup.trajectories_from',
  ];
  return `${counts}. Set ${remedies.join(', ')}, or warmup.steps = 0`;
}
