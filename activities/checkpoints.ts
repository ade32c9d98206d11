import type { Expiry, SavedPath } from '../core/training/checkpoint-ledger.ts';
import type { TendPlan } from '../core/training/checkpoint-lives.ts';
import type { Attempt, Found, TendResult } from '../core/training/checkpoint-tending.ts';
import { BadRequest, type Checkpoint, type Checkpoints, TinkerError } from '../services/tinker/index.ts';
import { whileBeating } from './beating.ts';
import type { ModelAccess } from './model-access.ts';

export type CheckpointDeps = { readonly models: ModelAccess };
export type CheckpointActivities = ReturnType<typeof createCheckpointActivities>;

export function createCheckpointActivities({ models }: CheckpointDeps) {
  const service = <T>(work: (checkpoints: Checkpoints) => Promise<T>) => models.withClient((client) => work(client.checkpoints));
  return {
    /**
     * Gives checkpoints other lives, deletes some, and reads what the service lists of them all. A call that fails is told in the answer, with
     * the service's words: nothing here may fail a run. May be done twice: what is deleted already is not listed, and so it is gone.
     */
    async tendCheckpoints({ look, renew, remove }: TendPlan): Promise<TendResult> {
      return whileBeating(async () => {
        const renewed: Attempt[] = [];
        for (const { path, ttlSeconds } of renew) renewed.push(await attempt(path, () => service((all) => setLife(all, path, ttlSeconds))));
        const removed: Attempt[] = [];
        for (const path of remove) removed.push(await attempt(path, () => service((all) => all.delete(path))));
        const undone = removed.filter(({ outcome }) => outcome !== 'done');
        const paths = [...new Set([...look, ...renewed.map(({ path }) => path), ...undone.map(({ path }) => path)])];
        const found = await service((all) => all.lookUp(paths)).catch(toldAsNull);
        return { renewed, removed, found: [...(found ?? [])].map(foundOf), isListRead: found !== null };
      }, models.longestWait);
    },
  };
}

async function setLife(checkpoints: Checkpoints, path: SavedPath, ttlSeconds: number | null): Promise<void> {
  if (await checkpoints.setTtl(path, ttlSeconds)) return;
  throw new BadRequest('the service has no such checkpoint, or cannot change lives', { call: 'ttl' });
}

async function attempt(path: SavedPath, work: () => Promise<void>): Promise<Attempt> {
  try {
    await work();
    return { path, outcome: 'done', words: '' };
  } catch (error) {
    if (!(error instanceof TinkerError)) throw error;
    return { path, outcome: error instanceof BadRequest ? 'refused' : 'failed', words: error.message };
  }
}

function toldAsNull(error: unknown): null {
  if (error instanceof TinkerError) return null;
  throw error;
}

function foundOf([path, listed]: [SavedPath, Checkpoint | null]): Found {
  return { path, isListed: listed !== null, expires: listed === null ? 'unknown' : expiryOf(listed) };
}

function expiryOf({ expiresAt }: Checkpoint): Expiry {
  if (expiresAt === null) return null;
  // Some servers leave the zone out; all of them mean UTC.
  const ms = Date.parse(/T.*(Z|[+-]\d\d:?\d\d)$/.test(expiresAt ?? '') ? `${expiresAt}` : `${expiresAt}Z`);
  return Number.isNaN(ms) ? 'unknown' : ms;
}
