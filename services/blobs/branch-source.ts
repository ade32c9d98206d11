import { z } from 'zod';
import type { StatePath } from '../../core/ids.ts';
import type { Branch, BranchSource } from '../../core/run/branch.ts';
import type { ObjectStore } from './object-store.ts';
import { claimKey, filesOf } from './run-keys.ts';
import { SavedStates } from './saved-states.ts';

const Path = z.string().transform((path) => path as StatePath);
const StoredBranch: z.ZodType<Branch> = z.object({
  statePath: Path,
  updates: z.int(),
  source: z.object({ runId: z.string(), executionId: z.string(), state: z.string(), savedAtMs: z.number() }).nullable(),
});

/** Of a run's record, what matters to a run that starts from it. */
const Record = z.object({
  executionId: z.string(),
  config: z.object({
    student: z.object({ base_model: z.string(), lora_rank: z.int() }),
    rollout: z.object({ renderers: z.record(z.string(), z.string()) }),
  }),
  train: z.array(z.object({ id: z.string() })),
  trainContents: z.array(z.string()),
  branch: StoredBranch.nullable().default(null),
});
const LastStatus = z.object({ outcome: z.string().nullable(), resume: z.object({ restoreFrom: z.string().nullable() }) });

/** What the store keeps of a run that another is to start from. Neither the run nor its history is asked. */
export async function readBranchSource(objects: ObjectStore, runId: string): Promise<BranchSource | 'unknown' | 'collected'> {
  const record = await read(objects, `${filesOf(runId)}run.json`, Record);
  if (record === null) return (await objects.has(claimKey(runId))) ? 'collected' : 'unknown';
  const status = await read(objects, `${filesOf(runId)}status.json`, LastStatus);
  const tripped = status?.outcome === 'stopped by tripwire' ? { restoreFrom: status.resume.restoreFrom } : null;
  const { train, trainContents, ...rest } = record;
  const tasks = train.map(({ id }, i) => ({ id, contentDigest: trainContents[i] ?? '' }));
  return { runId, ...rest, train: tasks, states: await new SavedStates(objects, runId).all(), tripped };
}

async function read<T>(objects: ObjectStore, key: string, schema: z.ZodType<T>): Promise<T | null> {
  const bytes = await objects.get(key);
  if (bytes === null) return null;
  const { data, error } = schema.safeParse(JSON.parse(new TextDecoder().decode(bytes)));
  if (error) throw new Error(`${key} is not what a run writes there: ${z.prettifyError(error)}`);
  return data;
}
