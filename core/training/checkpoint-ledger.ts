import type { SamplerPath, StatePath } from '../ids.ts';
import type { Checkpoint, CheckpointBook } from './checkpoints.ts';

export type SavedPath = StatePath | SamplerPath;

/** When a checkpoint's life ends, in ms since the epoch; null = never. Where nobody says, that is `unknown`, and not never. */
export type Expiry = number | null | 'unknown';

/**
 * The last try to give a checkpoint another life. `refused`: the service does not do it; `failed`: it could not this time. `cut`: one that
 * is not needed any more got the configured life back.
 */
export type Renewal = { readonly atMs: number; readonly outcome: 'done' | 'cut' | 'refused' | 'failed'; readonly words: string };

/** One thing that a run saved. */
export type LedgerEntry = {
  readonly path: SavedPath;
  readonly kind: 'state' | 'sampler';
  /** `step-NNNN` or `warmup`. */
  readonly name: string;
  /** Finished steps that are in it. */
  readonly step: number;
  readonly savedAtMs: number;
  readonly expires: Expiry;
  /** When its present life was given. */
  readonly lifeFromMs: number;
  readonly renewal: Renewal | null;
  /** What the service's list said of it the last time it was asked. One that was listed and is not any more is gone. */
  readonly seen: 'not asked' | 'listed' | 'not listed';
  /** Why it could not be deleted when it was to go. */
  readonly undeleted: Pick<Renewal, 'outcome' | 'words'> | null;
  /** Null while it is there, as far as is known. */
  readonly gone: { readonly atMs: number; readonly by: 'sweep' | 'expiry' } | null;
};

/** A state that training can be rebuilt from; the base model, before any training, has no path. */
export type TrainingBase = { readonly name: string; readonly step: number; readonly path: StatePath | null };

const BASE_MODEL: TrainingBase = { name: 'base model', step: 0, path: null };

export type CheckpointLedger = {
  /** What the run started from: the last resort of a rebuild. It is not the run's own to keep or to delete. */
  readonly start: TrainingBase;
  /** In the order they were saved. */
  readonly entries: readonly LedgerEntry[];
  /** The best interim evaluation so far; of equal ones the last. */
  readonly best: { readonly step: number; readonly solveRate: number } | null;
  /** Entries that were dropped so that the ledger stays small: gone ones, and then old ones that nothing has to be done about. */
  readonly dropped: number;
};

export const NO_LEDGER: CheckpointLedger = { start: BASE_MODEL, entries: [], best: null, dropped: 0 };

/** Gone entries that are kept, the newest. */
const GONE_KEPT = 50;
/** All others that are kept, pinned ones whatever their number: a run carries them along, in one message with all else. */
const MOST_KEPT = 400;

/** What a run saved just now, with the life that was asked for; null = none. */
export type Saved = Pick<LedgerEntry, 'path' | 'kind' | 'name' | 'step'> & { readonly ttlMs: number | null };

/** The ledger with what was saved just now. A path that was saved before is new again. */
export function withSaved(ledger: CheckpointLedger, { ttlMs, ...saved }: Saved, nowMs: number): CheckpointLedger {
  const entry: LedgerEntry = {
    ...saved,
    savedAtMs: nowMs,
    expires: ttlMs === null ? 'unknown' : nowMs + ttlMs,
    lifeFromMs: nowMs,
    renewal: null,
    seen: 'not asked',
    undeleted: null,
    gone: null,
  };
  return { ...ledger, entries: [...ledger.entries.filter(({ path }) => path !== saved.path), entry] };
}

/** The ledger after an interim evaluation of a step's weights; null measured nothing. */
export function withMeasured(ledger: CheckpointLedger, step: number, solveRate: number | null): CheckpointLedger {
  if (solveRate === null || (ledger.best !== null && solveRate < ledger.best.solveRate)) return ledger;
  return { ...ledger, best: { step, solveRate } };
}

/** What is still there, as far as is known. */
export const alive = ({ entries }: CheckpointLedger): readonly LedgerEntry[] => entries.filter(({ gone }) => gone === null);

/** The ledger with entries changed by path. */
export function withChanged(ledger: CheckpointLedger, change: (entry: LedgerEntry) => LedgerEntry): CheckpointLedger {
  return { ...ledger, entries: ledger.entries.map(change) };
}

/** The ledger in which all that nobody needs and whose time is over is gone: that is known without asking. */
export function withEnded(ledger: CheckpointLedger, isNeeded: (entry: LedgerEntry) => boolean, nowMs: number): CheckpointLedger {
  return withChanged(ledger, (entry) => {
    const isOver = entry.gone === null && typeof entry.expires === 'number' && entry.expires <= nowMs && !isNeeded(entry);
    return isOver ? { ...entry, gone: { atMs: nowMs, by: 'expiry' } } : entry;
  });
}

/**
 * The ledger at a size that can be carried along: the newest gone entries, and the newest of the others. Pinned ones always stay, and so do
 * those that wait to be deleted.
 */
export function compacted(ledger: CheckpointLedger, isNeeded: (entry: LedgerEntry) => boolean): CheckpointLedger {
  const gone = new Set(ledger.entries.filter(({ gone }) => gone !== null).slice(-GONE_KEPT));
  const there = ledger.entries.filter(({ gone }) => gone === null);
  const needed = new Set(there.filter(isNeeded));
  const others = there.filter((entry) => !needed.has(entry));
  const kept = new Set(others.slice(Math.max(0, others.length - Math.max(0, MOST_KEPT - needed.size))));
  const entries = ledger.entries.filter((entry) => gone.has(entry) || needed.has(entry) || kept.has(entry));
  return { ...ledger, entries, dropped: ledger.dropped + ledger.entries.length - entries.length };
}

/** The book of places to go on from, without what is gone. */
export function bookWithout(book: CheckpointBook, isGone: (path: SavedPath) => boolean): CheckpointBook {
  const checkpoints = book.checkpoints.flatMap((one): Checkpoint[] => {
    if (isGone(one.statePath)) return [];
    return [one.samplerPath !== null && isGone(one.samplerPath) ? { ...one, samplerPath: null } : one];
  });
  return { checkpoints, warmupState: book.warmupState !== null && isGone(book.warmupState) ? null : book.warmupState };
}
