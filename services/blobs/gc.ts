import pLimit from 'p-limit';
import { listed, type ObjectStore } from './object-store.ts';
import { claimKey, placeOf, READS, RUNS } from './run-keys.ts';

/** What the store keeps of one run, its claim not counted: that stays for good, so that its id is not used again. */
export type KeptRun = {
  readonly runId: string;
  readonly objects: number;
  readonly bytes: number;
  /** When the last of it was written. */
  readonly newestAtMs: number;
  /** Runs of the store that read this one's blobs. */
  readonly readBy: readonly string[];
};

/** Running now, ended, or not known to this Temporal server: past its retention, or a run of another server. */
export type RunState = 'running' | 'ended' | 'unknown';

export type GcOrder = {
  /** Only these; all where null. */
  readonly runIds: readonly string[] | null;
  /** Only runs whose newest object is older than this. */
  readonly writtenBeforeMs: number | null;
};

export type Judged = KeptRun & {
  readonly state: RunState;
  /** Why it is kept; null for a run that is to be collected. */
  readonly kept: string | null;
};

/** Deletions at once. */
const DELETERS = 8;

/** The runs that have more than a claim in the store, by id. */
export async function keptRuns(objects: ObjectStore): Promise<KeptRun[]> {
  const runs = new Map<string, KeptRun>();
  const reads: { reader: string; read: string }[] = [];
  for await (const { key, bytes, modifiedAtMs } of objects.list(RUNS)) {
    const runId = key.slice(RUNS.length, key.indexOf('/', RUNS.length));
    if (key === claimKey(runId)) continue;
    const reading = `${placeOf(runId)}${READS}`;
    if (key.startsWith(reading)) reads.push({ reader: runId, read: key.slice(reading.length) });
    const so = runs.get(runId) ?? { runId, objects: 0, bytes: 0, newestAtMs: 0, readBy: [] };
    runs.set(runId, { ...so, objects: so.objects + 1, bytes: so.bytes + bytes, newestAtMs: Math.max(so.newestAtMs, modifiedAtMs) });
  }
  const readersOf = Map.groupBy(reads, ({ read }) => read);
  return [...runs.values()].map((run) => ({ ...run, readBy: (readersOf.get(run.runId) ?? []).map(({ reader }) => reader) }));
}

/** Which runs an order takes, and why each other one is kept. Pure: what the store and the Temporal server say comes in. */
export function judge(runs: readonly KeptRun[], stateOf: (runId: string) => RunState, order: GcOrder): Judged[] {
  const reasons = new Map(runs.map((run) => [run.runId, reasonToKeep(run, stateOf(run.runId), order)]));
  // Who is read by a run that stays, stays: and so on along the chain.
  for (let changed = true; changed; ) {
    changed = false;
    for (const { runId, readBy } of runs) {
      const reader = readBy.find((other) => reasons.get(other) != null);
      if (reader === undefined || reasons.get(runId) !== null) continue;
      reasons.set(runId, `read by ${reader}`);
      changed = true;
    }
  }
  return runs.map((run) => ({ ...run, state: stateOf(run.runId), kept: reasons.get(run.runId) ?? null }));
}

function reasonToKeep({ runId, newestAtMs }: KeptRun, state: RunState, { runIds, writtenBeforeMs }: GcOrder): string | null {
  if (runIds !== null && !runIds.includes(runId)) return 'not named';
  if (state === 'running') return 'running';
  if (writtenBeforeMs !== null && newestAtMs >= writtenBeforeMs) return 'too new';
  if (state === 'unknown' && runIds === null) return 'unknown to this server: name it to collect it';
  return null;
}

/** Removes all that the store keeps of a run but its claim. What is interrupted can be done again. */
export async function collectRun(objects: ObjectStore, runId: string): Promise<void> {
  const entries = await listed(objects, placeOf(runId));
  await pLimit(DELETERS).map(
    entries.filter(({ key }) => key !== claimKey(runId)),
    ({ key }) => objects.delete(key),
  );
}
