import type { BlobRef } from '../core/ids.ts';
import { branchText } from '../core/run/branch.ts';
import { failed, passed } from '../core/run/check.ts';
import type { Check } from '../core/run/results.ts';
import { BadRequest, type Checkpoint, type StatePath, type TinkerClient, type WeightsInfo } from '../services/tinker/index.ts';
import { whileBeating } from './beating.ts';
import type { ModelAccess } from './model-access.ts';
import type { RunRecord, RunRecords } from './run-records.ts';

export type BranchCheckDeps = { readonly records: RunRecords; readonly models: Pick<ModelAccess, 'withClient' | 'longestWait'> };
export type BranchCheckActivities = ReturnType<typeof createBranchCheckActivities>;

const NAME = 'starts from';

export function createBranchCheckActivities({ records, models }: BranchCheckDeps) {
  return {
    /** Asks the service for the state that a run starts from: whether it is there, and of the student that the config wants. Costs nothing. */
    async checkBranch({ run }: { run: BlobRef }): Promise<Check> {
      const record = await records.load(run);
      return whileBeating(() => models.withClient((client) => check(client, record)), models.longestWait);
    },
  };
}

async function check(client: TinkerClient, { branch, config: { student } }: RunRecord): Promise<Check> {
  if (branch === null) return passed(NAME, 'a fresh adapter');
  const { statePath: path } = branch;
  const [saved, listed] = [await described(client, path), await listing(client, path)];
  if (typeof saved === 'string') {
    if (listed) return passed(NAME, `${branchText(branch)}${lifeOf(listed)}; the service does not say what it is made for`);
    const instead = branch.source === null ? '' : ` (${branch.source.runId}@step-N names an earlier state of that run)`;
    return failed(
      NAME,
      `the service does not have ${branchText(branch)}: it has expired there or was deleted: ${saved}. Name another state${instead}`,
    );
  }
  const problems = [
    ...(saved.baseModel === student.base_model ? [] : [differs('student.base_model', student.base_model, saved.baseModel)]),
    ...(saved.loraRank === null || saved.loraRank === student.lora_rank
      ? []
      : [differs('student.lora_rank', student.lora_rank, saved.loraRank)]),
  ];
  if (problems.length > 0) return failed(NAME, `${path}: ${problems.join('; ')}`);
  return passed(NAME, `${branchText(branch)}${lifeOf(listed)}`, saved.loraRank === null ? {} : { loraRank: saved.loraRank });
}

const differs = (field: string, own: string | number, saved: string | number) =>
  `${field} is ${JSON.stringify(own)}, and the saved state has ${JSON.stringify(saved)}: it must be the same`;

/** The service's words where it has no such state, or no such call. */
async function described(client: TinkerClient, path: StatePath): Promise<WeightsInfo | string> {
  return client.rest.weights.info(path).catch(wordsOf);
}

/** Null where it is not listed, or there are no lists. */
async function listing(client: TinkerClient, path: StatePath): Promise<Checkpoint | null> {
  const found = await client.checkpoints.lookUp([path]).catch(wordsOf);
  return typeof found === 'string' ? null : (found.get(path) ?? null);
}

function wordsOf(error: unknown): string {
  if (error instanceof BadRequest) return error.message;
  throw error;
}

const lifeOf = (listed: Checkpoint | null) => (listed?.expiresAt ? `, which the service keeps until ${listed.expiresAt}` : '');
