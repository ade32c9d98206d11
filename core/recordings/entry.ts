import { packColumns, unpackColumns } from '../tokens/columns.ts';

/** A paid call as it is about to be sent. */
export type CallIntent = {
  readonly kind: 'sample' | 'score';
  readonly who: 'student' | 'teacher';
  /** From 0, over the calls of one piece of work; a call that is made again keeps its number. */
  readonly index: number;
  /** Calls of the same attempt that were answered before this one was made. */
  readonly answered: number;
  /** Digest of everything the answer depends on: weights, tokens, settings. */
  readonly key: string;
  /** Which weights, for a person to read. */
  readonly model: string;
  readonly promptTokens: number;
  /** Most tokens that it can sample. */
  readonly mostSampledTokens: number;
};

/** What came back, as whoever asked for it can read it again: `detail` as JSON, tokens and numbers as columns. */
export type CallAnswer = {
  readonly sampledTokens: number;
  readonly cachedTokens: number;
  /** Submissions of the call before the one that was answered: the service lost them, and may have charged for them. */
  readonly resubmissions: number;
  /** False for an answer that nobody can use: it is paid for and not given out again. */
  readonly usable: boolean;
  readonly detail: unknown;
  readonly columns: readonly (Int32Array | Float64Array | Uint8Array)[];
};

/** One entry of the book of a piece of work; `of` is the place of the intent that it answers. */
export type Entry =
  | { readonly type: 'attempt'; readonly execution: string; readonly attempt: number; readonly nonce: string }
  | ({ readonly type: 'intent' } & CallIntent)
  | ({ readonly type: 'answer'; readonly of: number } & CallAnswer)
  /** The service refused the call before it did anything. */
  | { readonly type: 'refused'; readonly of: number }
  /** The service has taken the call and keeps its answer back until it is paid: it may be waited for again, by this name. */
  | { readonly type: 'standing'; readonly of: number; readonly requestId: string }
  /** The attempt ended because its model answered wrongly, or because the harbor runner that it was in died. */
  | { readonly type: 'failing'; readonly cause?: 'runner' }
  | { readonly type: 'finished'; readonly result: unknown };

const MAGIC = 'SRPC';
const VERSION = 1;

export function encodeEntry(entry: Entry): Uint8Array {
  if (entry.type !== 'answer') return packColumns(MAGIC, VERSION, entry, []);
  const { columns, ...meta } = entry;
  return packColumns(MAGIC, VERSION, meta, columns);
}

/** @throws TokenError `corrupt_bytes` */
export function decodeEntry(bytes: Uint8Array): Entry {
  const { meta, columns } = unpackColumns<Entry>(MAGIC, VERSION, 'entry of a book of calls', bytes);
  return meta.type === 'answer' ? { ...meta, columns } : meta;
}
