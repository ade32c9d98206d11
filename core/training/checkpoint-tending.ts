import { type CheckpointLedger, type Expiry, type LedgerEntry, type SavedPath, withChanged } from './checkpoint-ledger.ts';
import type { TendPlan } from './checkpoint-lives.ts';

/** How one call for one checkpoint ended. `words`: the service's own, empty when it is done. */
export type Attempt = { readonly path: SavedPath; readonly outcome: 'done' | 'refused' | 'failed'; readonly words: string };

/** What the service's list says of one path; `unknown` where it shows no expiry at all. */
export type Found = { readonly path: SavedPath; readonly isListed: boolean; readonly expires: Expiry };

/** What came of a plan. `found`: of all its paths, where the service has a list of them. */
export type TendResult = {
  readonly renewed: readonly Attempt[];
  readonly removed: readonly Attempt[];
  readonly found: readonly Found[];
  /** False when the service could not be asked for its lists. */
  readonly isListRead: boolean;
};

/** The ledger after a plan was carried out. */
export function withTended(ledger: CheckpointLedger, plan: TendPlan, result: TendResult, nowMs: number): CheckpointLedger {
  const found = new Map(result.found.map((one) => [one.path, one]));
  const renewed = new Map(result.renewed.map((one) => [one.path, one]));
  const removed = new Map(result.removed.map((one) => [one.path, one]));
  const orders = new Map(plan.renew.map((one) => [one.path, one]));
  const looked = new Set(result.isListRead ? plan.look : []);
  return withChanged(ledger, (entry) => {
    if (entry.gone !== null) return entry;
    const seen = found.get(entry.path);
    const removal = removed.get(entry.path);
    if (removal) return afterRemoval(entry, removal, seen, nowMs);
    const known = seen ? afterLook(entry, seen, nowMs) : looked.has(entry.path) ? { ...entry, seen: 'not listed' as const } : entry;
    const [attempt, order] = [renewed.get(entry.path), orders.get(entry.path)];
    return attempt && order && known.gone === null ? afterRenewal(entry, known, { attempt, order, seen }, nowMs) : known;
  });
}

function afterRemoval(entry: LedgerEntry, { outcome, words }: Attempt, seen: Found | undefined, nowMs: number): LedgerEntry {
  if (outcome === 'done' || seen?.isListed === false) return { ...entry, undeleted: null, gone: { atMs: nowMs, by: 'sweep' } };
  return { ...entry, undeleted: { outcome, words } };
}

/** A list that never showed a path says nothing by not showing it: some servers list another form of it. */
function afterLook(entry: LedgerEntry, { isListed, expires }: Found, nowMs: number): LedgerEntry {
  if (isListed) return { ...entry, seen: 'listed', expires: expires === 'unknown' ? entry.expires : expires };
  const isOver = entry.seen === 'listed' || (typeof entry.expires === 'number' && entry.expires <= nowMs);
  return isOver ? { ...entry, gone: { atMs: nowMs, by: 'expiry' } } : { ...entry, seen: 'not listed' };
}

type Tried = { readonly attempt: Attempt; readonly order: TendPlan['renew'][number]; readonly seen: Found | undefined };

function afterRenewal(before: LedgerEntry, known: LedgerEntry, { attempt, order, seen }: Tried, nowMs: number): LedgerEntry {
  const { outcome, words } = attempt;
  if (outcome !== 'done') return { ...known, renewal: { atMs: nowMs, outcome, words } };
  const asked = order.ttlSeconds === null ? null : nowMs + order.ttlSeconds * 1000;
  const expires = seen?.isListed && seen.expires !== 'unknown' ? seen.expires : asked;
  if (order.isCut) return { ...known, expires, lifeFromMs: nowMs, renewal: { atMs: nowMs, outcome: 'cut', words: '' } };
  const isUnmoved = typeof expires === 'number' && typeof before.expires === 'number' && expires <= before.expires;
  if (isUnmoved)
    return { ...known, renewal: { atMs: nowMs, outcome: 'refused', words: 'it took the call, and the life stayed as it was' } };
  return { ...known, expires, lifeFromMs: nowMs, renewal: { atMs: nowMs, outcome: 'done', words: '' } };
}
