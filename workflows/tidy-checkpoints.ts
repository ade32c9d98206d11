import { ApplicationFailure } from '@temporalio/workflow';
import { z } from 'zod';
import type { SavedPath } from '../core/training/checkpoint-ledger.ts';
import type { TendResult } from '../core/training/checkpoint-tending.ts';
import { checkpointCare } from './proxies.ts';

const Paths = z.array(z.string().startsWith('tinker://')).transform((paths) => paths as readonly string[] as readonly SavedPath[]);
const Order = z.strictObject({ look: Paths, remove: Paths });

/** Looks after checkpoints of a run that has ended: reads what the service lists of them, and deletes what it is told to. Gives none a new life. */
export async function tidyCheckpoints(input: unknown): Promise<TendResult> {
  const parsed = Order.safeParse(input);
  if (!parsed.success) throw ApplicationFailure.nonRetryable(`the paths: ${z.prettifyError(parsed.error)}`, 'BadRunInput');
  return checkpointCare().tendCheckpoints({ ...parsed.data, renew: [] });
}
