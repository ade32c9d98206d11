import type { RunConfig } from '../config/schema.ts';
import { alive, type CheckpointLedger, type LedgerEntry, type SavedPath } from './checkpoint-ledger.ts';
import { isForGood, type Pins } from './checkpoint-pins.ts';

/** `checkpoints{ttl_days, keep_last}` of the config; null = not set. */
export type KeepRules = { readonly ttlSeconds: number | null; readonly keepLast: number | null };

/** The life that every save of a run asks for; nothing where the config does not say: the service's own rules hold then. */
export function saveLife({ checkpoints: { ttl_days: days } }: Pick<RunConfig, 'checkpoints'>): { readonly ttlSeconds?: number } {
  return days === null ? {} : { ttlSeconds: Math.round(days * 24 * 3600) };
}

/** A checkpoint that is needed is given this life at least, so that a wait of months takes a few renewals and not thousands. */
const LONG_LIFE_MS = 30 * 24 * 3_600_000;
/** Between two tries for the same checkpoint, at least. */
const LEAST_GAP_MS = 60_000;
/** Deletions that are asked for at once. */
const MOST_REMOVALS = 50;

/** What is to be done on the service. */
export type TendPlan = {
  /** Paths whose expiry is asked for. */
  readonly look: readonly SavedPath[];
  /** New lives, in seconds from now; null = never to expire. */
  readonly renew: readonly { readonly path: SavedPath; readonly ttlSeconds: number | null; readonly isCut: boolean }[];
  readonly remove: readonly SavedPath[];
};

/** What is due now: expiries nobody has asked for yet, renewals, lives to cut, and what `keepLast` sweeps. `isEnding`: nobody will look again. */
export function tendPlan(ledger: CheckpointLedger, pins: Pins, rules: KeepRules, nowMs: number, isEnding = false): TendPlan {
  const remove = rules.keepLast === null ? [] : sweepable(ledger, pins, rules.keepLast);
  const going = new Set(remove);
  const staying = alive(ledger).filter((entry) => !going.has(entry));
  return {
    look: staying.filter(({ seen }) => seen === 'not asked').map(({ path }) => path),
    renew: staying.flatMap((entry) => {
      const dueMs = dueAtMs(entry, pins, rules);
      const isDue = dueMs !== null && (dueMs <= nowMs || (isEnding && pins.has(entry.path) && endsBefore(entry, nowMs + LONG_LIFE_MS / 2)));
      return isDue ? [{ path: entry.path, ttlSeconds: lifeFor(entry, pins, rules), isCut: !pins.has(entry.path) }] : [];
    }),
    remove: remove.slice(0, MOST_REMOVALS).map(({ path }) => path),
  };
}

/** A plan in words, for whoever watches. */
export function planText({ look, renew, remove }: TendPlan): string {
  const parts: readonly (readonly [number, string])[] = [
    [look.length, 'look at'],
    [renew.length, 'renew'],
    [remove.length, 'delete'],
  ];
  return parts.flatMap(([count, what]) => (count > 0 ? [`${what} ${count}`] : [])).join(', ');
}

export const isNothing = ({ look, renew, remove }: TendPlan): boolean => look.length + renew.length + remove.length === 0;

/** When something is due next, in ms since the epoch; null when nothing ever is. */
export function nextDueMs(ledger: CheckpointLedger, pins: Pins, rules: KeepRules): number | null {
  const due = alive(ledger).flatMap((entry) => dueAtMs(entry, pins, rules) ?? []);
  return due.length === 0 ? null : Math.min(...due);
}

/**
 * What `keepLast` sweeps: of each kind all but the newest so many, and never a pinned one. Those that the service refuses to delete are left
 * out: it was asked.
 */
export function sweepable(ledger: CheckpointLedger, pins: Pins, keepLast: number): readonly LedgerEntry[] {
  const there = alive(ledger);
  const newest = new Set((['state', 'sampler'] as const).flatMap((kind) => there.filter((entry) => entry.kind === kind).slice(-keepLast)));
  return there.filter((entry) => !newest.has(entry) && !pins.has(entry.path) && entry.undeleted?.outcome !== 'refused');
}

/**
 * When a life must be changed; null for never. One that is needed is renewed at half of what it has left, final weights at once, and one
 * that was renewed and is not needed any more gets the configured life back.
 */
function dueAtMs(entry: LedgerEntry, pins: Pins, { ttlSeconds }: KeepRules): number | null {
  const { path, expires, lifeFromMs, renewal } = entry;
  if (renewal?.outcome === 'refused') return null;
  const afterTryMs = renewal === null ? 0 : renewal.atMs + LEAST_GAP_MS;
  if (!pins.has(path)) return renewal?.outcome === 'done' && ttlSeconds !== null ? afterTryMs : null;
  if (typeof expires !== 'number') return null;
  if (renewal?.outcome === 'failed') return afterFailureMs(renewal.atMs, expires);
  if (isForGood(pins.get(path)) && renewal?.outcome !== 'done') return lifeFromMs;
  return Math.max(lifeFromMs + (expires - lifeFromMs) / 2, afterTryMs);
}

/** After a quarter of what is left, a minute at least; null when nothing is. */
function afterFailureMs(triedAtMs: number, expiresMs: number): number | null {
  const leftMs = expiresMs - triedAtMs;
  return leftMs <= 0 ? null : triedAtMs + Math.max(LEAST_GAP_MS, leftMs / 4);
}

/** In seconds. What is needed gets no shorter life than it was given before: asked for at half of it, a shorter one could end sooner. */
function lifeFor({ path, expires, lifeFromMs }: LedgerEntry, pins: Pins, { ttlSeconds }: KeepRules): number | null {
  if (isForGood(pins.get(path))) return null;
  if (!pins.has(path)) return ttlSeconds;
  const givenMs = typeof expires === 'number' ? expires - lifeFromMs : 0;
  return Math.max(ttlSeconds ?? 0, Math.ceil(Math.max(LONG_LIFE_MS, givenMs) / 1000));
}

const endsBefore = ({ expires }: LedgerEntry, ms: number) => typeof expires === 'number' && expires < ms;
