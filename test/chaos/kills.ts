import { setTimeout as sleep } from 'node:timers/promises';
import type { Hit, Killer } from './killing.ts';
import type { Sightings } from './leftovers.ts';
import { type Moments, RunEnded } from './moments.ts';
import type { PlannedKill } from './schedule.ts';

/** A kill that happened. */
export type KillRecord = PlannedKill & {
  readonly pid: number;
  readonly atMs: number;
  /** Where the run was, or why the moment was not met. */
  readonly place: string;
  /** Whether the moment had come: trials in flight, or an update pending. */
  readonly met: boolean;
  /** From the kill until another trial was done; null when that took too long. */
  readonly recoveredMs: number | null;
};

export type KillTools = {
  readonly moments: Moments;
  readonly killer: Killer;
  readonly sightings: Sightings;
  readonly tell: (line: string) => void;
};

/** A moment that does not come within this time is not waited for: the kill comes anyhow. */
const MOMENT_LIMIT_MS = 120_000;
const RECOVERY_LIMIT_MS = 180_000;
/** How long a part may take to be there again. */
const PART_LIMIT_MS = 60_000;

/** Kills in the order of the schedule: each when its moment has come, the next one when the run has got on. Ends early with the run. */
export async function killInTurn(schedule: readonly PlannedKill[], tools: KillTools): Promise<KillRecord[]> {
  const records: KillRecord[] = [];
  for (const planned of schedule) {
    const record = await killOnce(planned, tools).catch((error) => {
      if (error instanceof RunEnded) return null;
      throw error;
    });
    if (record === null) break;
    records.push(record);
    tools.tell(toldAs(record));
  }
  return records;
}

async function killOnce(planned: PlannedKill, { moments, killer, sightings }: KillTools): Promise<KillRecord> {
  const { place, updating } = await momentOf(planned, moments, sightings);
  const hit = await hitWhenThere(planned, killer, updating);
  const recoveredMs = await moments.recovered(hit.atMs, RECOVERY_LIMIT_MS);
  sightings.note();
  return { ...planned, pid: hit.pid, atMs: hit.atMs, place: place ?? 'the moment did not come', met: place !== null, recoveredMs };
}

/** Waits for the moment and its delay. An update that was answered meanwhile is passed over: the next one will do. */
async function momentOf({ moment, delayMs }: PlannedKill, moments: Moments, sightings: Sightings) {
  const deadline = Date.now() + MOMENT_LIMIT_MS;
  for (;;) {
    const place = await moments.wait(moment, deadline - Date.now());
    sightings.note();
    await sleep(delayMs);
    if (place === null || moment === 'trials') return { place, updating: null };
    const updating = await moments.updatingPid();
    if (updating !== null) return { place, updating };
  }
}

async function hitWhenThere({ target, signal, number }: PlannedKill, killer: Killer, preferred: number | null): Promise<Hit> {
  const deadline = Date.now() + PART_LIMIT_MS;
  for (;;) {
    const hit = killer.hit(target, signal, number, preferred);
    if (hit) return hit;
    if (Date.now() > deadline) throw new Error(`kill ${number}: there was no ${target} to hit within ${PART_LIMIT_MS / 1000} s`);
    await sleep(100);
  }
}

function toldAs({ number, target, signal, moment, place, recoveredMs }: KillRecord): string {
  const again = recoveredMs === null ? 'not recovered' : `${(recoveredMs / 1000).toFixed(1)} s until the run got on`;
  return `kill ${number}: ${signal} ${target} (${moment}: ${place}); ${again}`;
}
