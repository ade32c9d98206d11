import type { TrialId } from '../ids.ts';
import { at } from '../lists.ts';
import { packColumns, unpackColumns } from './columns.ts';
import { concatFloat64, concatInt32 } from './episode-codec.ts';
import type { Datum } from './span.ts';
import { lossStretches } from './stretches.ts';
import { datumName, TokenError } from './token-error.ts';

/** The training sequences of one episode with the teacher's rows, as `keepTeacherRow` returns them: one row per datum. */
export type ScoredEpisode = {
  readonly trial: TrialId;
  readonly datums: readonly Datum[];
  readonly rows: readonly Float64Array[];
};

const MAGIC = 'SRSC';
const VERSION = 1;
type ScoredMeta = { readonly trial: string; readonly fragments: readonly number[] };

/** Bytes of a scored episode for the blob store. Log-probabilities and scores are stored for loss positions only: elsewhere they are 0 and NaN. */
export function encodeScoredEpisode(scored: ScoredEpisode): Uint8Array {
  const { datums, rows } = scored;
  if (rows.length !== datums.length) {
    throw new TokenError('row_count_mismatch', `trial ${scored.trial}`, `${rows.length} teacher rows for ${datums.length} datums`);
  }
  datums.forEach((datum, d) => {
    if (at(rows, d).length !== datum.tokens.length) {
      throw new TokenError('length', datumName(datum), `${at(rows, d).length} scores for ${datum.tokens.length} tokens`);
    }
  });
  const stretches = datums.map((datum) => lossStretches(datum.mask));
  const logprobs = concatFloat64(stretches.flatMap((own, d) => partsOf(at(datums, d).logprobs, own)));
  const scores = concatFloat64(stretches.flatMap((own, d) => partsOf(at(rows, d), own)));
  const meta: ScoredMeta = { trial: scored.trial, fragments: datums.map((datum) => datum.fragment) };
  const mask = new Uint8Array(datums.reduce((sum, datum) => sum + datum.mask.length, 0));
  let maskAt = 0;
  for (const datum of datums) {
    mask.set(datum.mask, maskAt);
    maskAt += datum.mask.length;
  }
  const lengths = Int32Array.from(datums, (datum) => datum.tokens.length);
  return packColumns(MAGIC, VERSION, meta, [lengths, concatInt32(datums.map((datum) => datum.tokens)), mask, logprobs, scores]);
}

/** Reads what `encodeScoredEpisode` wrote. @throws TokenError `corrupt_bytes`. */
export function decodeScoredEpisode(bytes: Uint8Array): ScoredEpisode {
  const { meta, columns } = unpackColumns<ScoredMeta>(MAGIC, VERSION, 'scored episode', bytes);
  const [lengths, tokens, mask, lossLogprobs, lossScores] = columns as [Int32Array, Int32Array, Uint8Array, Float64Array, Float64Array];
  const trial = meta.trial as TrialId;
  const datums: Datum[] = [];
  const rows: Float64Array[] = [];
  let from = 0;
  let lossAt = 0;
  lengths.forEach((length, d) => {
    const own = mask.slice(from, from + length);
    const logprobs = new Float64Array(length);
    const row = new Float64Array(length).fill(Number.NaN);
    const stretches = lossStretches(own);
    for (let s = 0; s < stretches.length; s += 2) {
      const start = stretches[s] as number;
      const lossTo = lossAt + (stretches[s + 1] as number) - start;
      logprobs.set(lossLogprobs.subarray(lossAt, lossTo), start);
      row.set(lossScores.subarray(lossAt, lossTo), start);
      lossAt = lossTo;
    }
    datums.push({ trial, fragment: at(meta.fragments, d), tokens: tokens.slice(from, from + length), mask: own, logprobs });
    rows.push(row);
    from += length;
  });
  if (from !== tokens.length || from !== mask.length || lossAt !== lossLogprobs.length || lossAt !== lossScores.length) {
    throw new TokenError('corrupt_bytes', `scored episode of trial ${meta.trial}`, 'its columns do not add up; the blob cannot be read');
  }
  return { trial, datums, rows };
}

function partsOf(values: Float64Array, stretches: readonly number[]): Float64Array[] {
  return Array.from({ length: stretches.length / 2 }, (_, s) => values.subarray(stretches[2 * s], stretches[2 * s + 1]));
}
