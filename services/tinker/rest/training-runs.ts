import { z } from 'zod';
import type { Caller } from '../http/caller.ts';
import { type Checkpoint, checkpointOf, checkpointSchema } from './checkpoints.ts';
import { cursorSchema, everyPage, type Page, type PageOptions } from './paging.ts';
import { type AccessScope, getJson } from './request.ts';

/** A model that was trained. Null where the service does not say. */
export type TrainingRun = {
  /** Also the model's id. */
  readonly id: string;
  readonly baseModel: string;
  readonly owner: string | null;
  readonly isLora: boolean | null;
  readonly loraRank: number | null;
  /** Its state on the service is damaged: start again from a checkpoint. */
  readonly isCorrupted: boolean | null;
  /** ISO 8601. */
  readonly lastRequestAt: string | null;
  readonly lastCheckpoint: Checkpoint | null;
  readonly lastSamplerCheckpoint: Checkpoint | null;
  readonly userMetadata: Readonly<Record<string, string>> | null;
};

export type RunFilter = { readonly accessScope?: AccessScope; readonly projectId?: string };

const runSchema = z.object({
  training_run_id: z.string(),
  base_model: z.string(),
  model_owner: z.string().nullish(),
  is_lora: z.boolean().nullish(),
  corrupted: z.boolean().nullish(),
  lora_rank: z.number().nullish(),
  last_request_time: z.string().nullish(),
  last_checkpoint: checkpointSchema.nullish(),
  last_sampler_checkpoint: checkpointSchema.nullish(),
  user_metadata: z.record(z.string(), z.string()).nullish(),
});
const listSchema = z.object({ training_runs: z.array(runSchema), cursor: cursorSchema });

const PAGE_LIMIT = 20;

export class TrainingRuns {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** @throws BadRequest when there is no such run */
  async get(runId: string, { accessScope = 'owned' }: Pick<RunFilter, 'accessScope'> = {}): Promise<TrainingRun> {
    return runOf(await getJson(this.#caller, `training_runs/${runId}`, { access_scope: accessScope }, runSchema));
  }

  async page({
    limit = PAGE_LIMIT,
    offset = 0,
    accessScope = 'owned',
    projectId,
  }: PageOptions & RunFilter = {}): Promise<Page<TrainingRun>> {
    const query = { limit, offset, access_scope: accessScope, project_id: projectId };
    const { training_runs, cursor } = await getJson(this.#caller, 'training_runs', query, listSchema);
    return { items: training_runs.map(runOf), totalCount: cursor?.total_count ?? null };
  }

  /** All runs, page by page. */
  all(filter: RunFilter = {}): AsyncGenerator<TrainingRun> {
    return everyPage(PAGE_LIMIT, (options) => this.page({ ...filter, ...options }));
  }
}

function runOf(run: z.infer<typeof runSchema>): TrainingRun {
  return {
    id: run.training_run_id,
    baseModel: run.base_model,
    owner: run.model_owner ?? null,
    isLora: run.is_lora ?? null,
    loraRank: run.lora_rank ?? null,
    isCorrupted: run.corrupted ?? null,
    lastRequestAt: run.last_request_time ?? null,
    lastCheckpoint: run.last_checkpoint ? checkpointOf(run.last_checkpoint) : null,
    lastSamplerCheckpoint: run.last_sampler_checkpoint ? checkpointOf(run.last_sampler_checkpoint) : null,
    userMetadata: run.user_metadata ?? null,
  };
}
