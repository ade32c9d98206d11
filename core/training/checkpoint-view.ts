import type { StatePath } from '../ids.ts';
import { alive, type CheckpointLedger, type Expiry, type LedgerEntry, type SavedPath, type TrainingBase } from './checkpoint-ledger.ts';
import { type KeepRules, nextDueMs, sweepable } from './checkpoint-lives.ts';
import type { Pin, Pins } from './checkpoint-pins.ts';
import type { TendResult } from './checkpoint-tending.ts';

/** What a rebuild can start from at that time, the best first; what the run started from is always the last. */
export function survivingBases(ledger: CheckpointLedger, atMs: number): readonly [TrainingBase, ...TrainingBase[]] {
  return basesOf(
    ledger,
    alive(ledger).filter(({ expires }) => typeof expires !== 'number' || expires > atMs),
  );
}

function basesOf({ start }: CheckpointLedger, entries: readonly LedgerEntry[]): readonly [TrainingBase, ...TrainingBase[]] {
  const states = entries.filter(({ kind }) => kind === 'state').toReversed();
  const bases = states
    .map(({ name, step, path }): TrainingBase => ({ name, step, path: path as StatePath }))
    .sort((a, b) => b.step - a.step);
  const [best, ...others] = [...bases, start];
  return [best ?? start, ...others];
}

/** What a base is to a person. */
export const baseText = ({ name, path }: TrainingBase): string =>
  path === null ? 'the base model' : `the training state ${name} (${path})`;

/** What is needed and cannot be kept: when the first of it ends, and what a rebuild would start from once all of it has. Null when there is none. */
export function lifeWarning(ledger: CheckpointLedger, pins: Pins, nowMs: number): string | null {
  const ending = alive(ledger).filter((entry) => pins.has(entry.path) && isLeftToDie(entry) && Number(entry.expires) > nowMs);
  const [first] = ending.toSorted((a, b) => Number(a.expires) - Number(b.expires));
  if (!first) return null;
  const base = basesOf(
    ledger,
    alive(ledger).filter((entry) => !ending.includes(entry)),
  )[0];
  const why = first.renewal?.outcome === 'refused' ? 'the service does not renew it' : 'the service has not renewed it so far';
  const which = ending.map(({ name, kind }) => `${name} (${kind})`).join(', ');
  return `${which} will expire, the first at ${isoOf(Number(first.expires))}: ${why} (${first.renewal?.words}). A run that still waits then goes on from ${baseText(base)}.`;
}

const isLeftToDie = ({ expires, renewal }: LedgerEntry) =>
  typeof expires === 'number' && (renewal?.outcome === 'refused' || renewal?.outcome === 'failed');

/** The ledger in short, for the status. */
export type CheckpointSummary = {
  /** Checkpoints that are there. */
  readonly saved: number;
  /** The first of those that are needed to end, unless it is renewed; null when none has an end that is known. ISO 8601. */
  readonly firstEnd: { readonly name: string; readonly kind: LedgerEntry['kind']; readonly at: string } | null;
  readonly warning: string | null;
};

export function summaryOf(ledger: CheckpointLedger, pins: Pins, nowMs: number): CheckpointSummary {
  const there = alive(ledger);
  const ends = there.flatMap((entry) =>
    pins.has(entry.path) && typeof entry.expires === 'number' ? [{ ...entry, endMs: entry.expires }] : [],
  );
  const first = ends.reduce<(typeof ends)[number] | null>((best, one) => (best === null || one.endMs < best.endMs ? one : best), null);
  return {
    saved: there.length,
    firstEnd: first && { name: first.name, kind: first.kind, at: isoOf(first.endMs) },
    warning: lifeWarning(ledger, pins, nowMs),
  };
}

/** A line of the ledger as people and programs read it. Times in ISO 8601. */
export type CheckpointRow = {
  readonly path: SavedPath;
  readonly kind: LedgerEntry['kind'];
  readonly name: string;
  readonly step: number;
  readonly savedAt: string;
  /** Null = never; `unknown` = the service does not say. */
  readonly expiresAt: string | null;
  readonly pinned: readonly Pin[];
  readonly wouldSweep: boolean;
  /** Why the service did not delete it when it was to go. */
  readonly undeleted: string | null;
  /** `since`: the service does not list it, and it went after the run had ended. */
  readonly gone: { readonly at: string; readonly by: 'sweep' | 'expiry' | 'since' } | null;
};

export type CheckpointsView = {
  readonly rows: readonly CheckpointRow[];
  /** The life that saves ask for, in seconds; null = none. */
  readonly ttlSeconds: number | null;
  /** What `wouldSweep` is judged by: as asked, else as configured; null = nothing is swept. */
  readonly keepLast: number | null;
  /** Lines that were dropped to keep the ledger small. */
  readonly dropped: number;
  /** When a life is renewed next; null = never. */
  readonly nextRenewalAt: string | null;
  readonly warning: string | null;
  /** What training could be rebuilt from, the best first. */
  readonly bases: readonly TrainingBase[];
};

export function viewOf(ledger: CheckpointLedger, pins: Pins, rules: KeepRules, nowMs: number): CheckpointsView {
  const going = new Set(rules.keepLast === null ? [] : sweepable(ledger, pins, rules.keepLast));
  const dueMs = nextDueMs(ledger, pins, rules);
  return {
    rows: ledger.entries.map((entry) => ({
      path: entry.path,
      kind: entry.kind,
      name: entry.name,
      step: entry.step,
      savedAt: isoOf(entry.savedAtMs),
      expiresAt: expiryText(entry.expires),
      pinned: pins.get(entry.path) ?? [],
      wouldSweep: going.has(entry),
      undeleted: entry.undeleted?.words ?? null,
      gone: entry.gone && { at: isoOf(entry.gone.atMs), by: entry.gone.by },
    })),
    ttlSeconds: rules.ttlSeconds,
    keepLast: rules.keepLast,
    dropped: ledger.dropped,
    nextRenewalAt: dueMs === null ? null : isoOf(dueMs),
    warning: lifeWarning(ledger, pins, nowMs),
    bases: survivingBases(ledger, nowMs),
  };
}

/** The view of a run that has ended, after what the service said now: its own ledger has stopped. `at`: ISO 8601. */
export function viewAfter(view: CheckpointsView, { removed, found }: TendResult, at: string): CheckpointsView {
  const listed = new Map(found.map((one) => [one.path, one]));
  const removals = new Map(removed.map((one) => [one.path, one]));
  const rows = view.rows.map((row): CheckpointRow => {
    const [seen, removal] = [listed.get(row.path), removals.get(row.path)];
    if (row.gone !== null) return row;
    if (removal?.outcome === 'done') return { ...row, wouldSweep: false, undeleted: null, gone: { at, by: 'sweep' } };
    if (seen?.isListed === false) return { ...row, wouldSweep: false, undeleted: null, gone: { at, by: 'since' } };
    const expiresAt = seen && seen.expires !== 'unknown' ? expiryText(seen.expires) : row.expiresAt;
    return { ...row, expiresAt, undeleted: removal?.words ?? row.undeleted };
  });
  const lost = new Set(rows.flatMap(({ path, gone }) => (gone === null ? [] : [path])));
  const bases = view.bases.filter(({ path }) => path === null || !lost.has(path));
  return { ...view, rows, bases, nextRenewalAt: null, warning: null };
}

const expiryText = (expires: Expiry): string | null => (typeof expires === 'number' ? isoOf(expires) : expires);

const isoOf = (ms: number) => new Date(ms).toISOString();
