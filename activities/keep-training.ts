import { setTimeout as sleep } from 'node:timers/promises';
import { cancellationSignal } from '@temporalio/activity';
import type { BlobRef } from '../core/ids.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { SessionLost, type TinkerClient } from '../services/tinker/index.ts';
import { whileBeating } from './beating.ts';
import type { ModelAccess } from './model-access.ts';
import type { RunRecords } from './run-records.ts';
import { newestSession } from './training-journal.ts';

export type KeepOrder = {
  readonly run: BlobRef;
  /** The generation of the training that the run knows of; there may be newer ones. */
  readonly generation: number;
};

export type KeepTrainingDeps = {
  readonly records: RunRecords;
  readonly objects: ObjectStore;
  readonly models: ModelAccess;
  /** How often it looks for a rebuilt training. */
  readonly lookEveryMs?: number;
};
export type KeepTrainingActivities = ReturnType<typeof createKeepTrainingActivities>;

export function createKeepTrainingActivities({ records, objects, models, lookEveryMs = 10_000 }: KeepTrainingDeps) {
  return {
    /**
     * Keeps the session of a run's training alive until it is cancelled, whichever worker trains in it, and whichever session that is
     * after a rebuild. A session that is lost all the same is no failure of this: the next training call finds it out.
     */
    async keepTraining({ run, generation: from }: KeepOrder): Promise<void> {
      const { runId } = await records.load(run);
      const signal = cancellationSignal();
      let generation = from;
      let kept: Kept | null = null;
      await whileBeating(async () => {
        try {
          for (;;) {
            const newest = await newestSession(objects, runId, generation);
            generation = newest.generation;
            if (newest.sessionId !== null && newest.sessionId !== kept?.sessionId) {
              await kept?.client?.leave();
              kept = { sessionId: newest.sessionId, client: await joined(models, newest.sessionId) };
            }
            await sleep(lookEveryMs, undefined, { signal });
          }
        } finally {
          await kept?.client?.leave();
        }
      });
    },
  };
}

/** `client`: null when the session is lost. */
type Kept = { readonly sessionId: string; readonly client: TinkerClient | null };

/** A client beats by itself for as long as it is there. */
async function joined(models: ModelAccess, sessionId: string): Promise<TinkerClient | null> {
  try {
    return await models.joinSession(sessionId);
  } catch (error) {
    if (error instanceof SessionLost) return null;
    throw error;
  }
}
