import type { TrialId } from '../ids.ts';
import { at } from '../lists.ts';
import { packColumns, unpackColumns } from './columns.ts';
import type { Datum } from './span.ts';
import { datumName, TokenError } from './token-error.ts';
import type { TopkRow } from './topk.ts';

const MAGIC = 'SRTK';
const VERSION = 1;
type TopkMeta = { readonly trial: string; readonly widths: readonly number[] };

/** Bytes of an episode's candidates for the blob store: one row per datum. Only loss positions are kept; elsewhere nothing is read. */
export function encodeTopkRows(trial: TrialId, datums: readonly Datum[], rows: readonly TopkRow[]): Uint8Array {
  if (rows.length !== datums.length) {
    throw new TokenError('row_count_mismatch', `trial ${trial}`, `${rows.length} top-k rows for ${datums.length} datums`);
  }
  datums.forEach((datum, d) => {
    const { counts } = at(rows, d);
    if (counts.length !== datum.tokens.length)
      throw new TokenError('length', datumName(datum), `candidates at ${counts.length} positions for ${datum.tokens.length} tokens`);
  });
  const counts = Int32Array.from(datums.flatMap(({ mask }, d) => lossPositions(mask).map((p) => at(rows, d).counts[p] as number)));
  const size = counts.reduce((sum, count) => sum + Math.max(0, count), 0);
  const tokens = new Int32Array(size);
  const logprobs = new Float64Array(size);
  let next = 0;
  datums.forEach(({ mask }, d) => {
    const row = at(rows, d);
    for (const p of lossPositions(mask)) {
      const [from, count] = [p * row.width, Math.max(0, row.counts[p] as number)];
      tokens.set(row.tokens.subarray(from, from + count), next);
      logprobs.set(row.logprobs.subarray(from, from + count), next);
      next += count;
    }
  });
  const meta: TopkMeta = { trial, widths: rows.map((row) => row.width) };
  return packColumns(MAGIC, VERSION, meta, [counts, tokens, logprobs]);
}

/** Reads what `encodeTopkRows` wrote for the same datums. @throws TokenError `corrupt_bytes` */
export function decodeTopkRows(bytes: Uint8Array, datums: readonly Datum[]): TopkRow[] {
  const { meta, columns } = unpackColumns<TopkMeta>(MAGIC, VERSION, 'candidates', bytes);
  const [counts, tokens, logprobs] = columns as [Int32Array, Int32Array, Float64Array];
  const fail = () => new TokenError('corrupt_bytes', `candidates of trial ${meta.trial}`, 'they do not fit its datums');
  if (meta.widths.length !== datums.length) throw fail();
  let position = 0;
  let next = 0;
  const rows = datums.map(({ mask }, d) => {
    const width = at(meta.widths, d);
    const row = {
      width,
      counts: new Int32Array(mask.length).fill(-1),
      tokens: new Int32Array(mask.length * width),
      logprobs: new Float64Array(mask.length * width).fill(Number.NaN),
    };
    for (const p of lossPositions(mask)) {
      const count = counts[position++];
      if (count === undefined || count > width) throw fail();
      row.counts[p] = count;
      row.tokens.set(tokens.subarray(next, next + Math.max(0, count)), p * width);
      row.logprobs.set(logprobs.subarray(next, next + Math.max(0, count)), p * width);
      next += Math.max(0, count);
    }
    return row;
  });
  if (position !== counts.length || next !== tokens.length) throw fail();
  return rows;
}

function lossPositions(mask: Uint8Array): number[] {
  const positions: number[] = [];
  for (let p = 0; p < mask.length; p++) if (mask[p] === 1) positions.push(p);
  return positions;
}
