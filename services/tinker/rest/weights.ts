import { z } from 'zod';
import { SettingMissing } from '../errors.ts';
import type { Caller } from '../http/caller.ts';
import { newIdempotencyKey } from '../http/waiting.ts';
import type { SamplerPath, StatePath } from '../paths.ts';
import { defaultProjectId } from '../session/session-options.ts';
import { postJson } from './request.ts';

/** What saved weights are made for. Null where the service does not say. */
export type WeightsInfo = {
  readonly baseModel: string;
  readonly isLora: boolean | null;
  readonly loraRank: number | null;
  readonly trainUnembed: boolean | null;
  readonly trainMlp: boolean | null;
  readonly trainAttn: boolean | null;
  /** E.g. adamw. */
  readonly optimizerType: string | null;
};

export type CopyOptions = {
  /** The project that gets the copy. Default: TINKER_PROJECT_ID. */
  readonly projectId?: string;
  /** The model that gets the copy, instead of a project. */
  readonly model?: { readonly sessionId: string; readonly modelSeqId: number };
  readonly ttlSeconds?: number;
  /** For weights that another account shared. */
  readonly weightsAccessToken?: string;
};

const infoSchema = z.object({
  base_model: z.string(),
  is_lora: z.boolean().nullish(),
  lora_rank: z.number().nullish(),
  train_unembed: z.boolean().nullish(),
  train_mlp: z.boolean().nullish(),
  train_attn: z.boolean().nullish(),
  optimizer_config: z.looseObject({ type: z.string() }).nullish(),
});
const copiedSchema = z.object({ tinker_path: z.string() });

export class Weights {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** @throws BadRequest when there are no such weights */
  async info(path: StatePath | SamplerPath): Promise<WeightsInfo> {
    const info = await postJson(this.#caller, 'weights_info', { tinker_path: path }, infoSchema);
    return {
      baseModel: info.base_model,
      isLora: info.is_lora ?? null,
      loraRank: info.lora_rank ?? null,
      trainUnembed: info.train_unembed ?? null,
      trainMlp: info.train_mlp ?? null,
      trainAttn: info.train_attn ?? null,
      optimizerType: info.optimizer_config?.type ?? null,
    };
  }

  /** The copy's path; it is of the same kind. @throws BadRequest; SettingMissing when it is not said where to */
  async copy<Path extends StatePath | SamplerPath>(path: Path, options: CopyOptions = {}): Promise<Path> {
    const body = { source_path: path, ttl_seconds: options.ttlSeconds, ...destination(options) };
    const { weightsAccessToken: token } = options;
    if (token !== undefined) this.#caller.credential.hide(token);
    // One key over all repeats: a copy carries no number that the service could know it by.
    const key = { 'x-idempotency-key': newIdempotencyKey() };
    const headers: Record<string, string> = token === undefined ? key : { ...key, 'x-tinker-weights-access-token': token };
    return (await postJson(this.#caller, 'copy_weights', body, copiedSchema, headers)).tinker_path as Path;
  }
}

function destination({ model, projectId = defaultProjectId() }: CopyOptions): object {
  if (model !== undefined) return { session_id: model.sessionId, model_seq_id: model.modelSeqId };
  if (projectId !== undefined) return { destination_project_id: projectId };
  throw new SettingMissing('a copy needs a projectId, a model, or TINKER_PROJECT_ID', { call: 'copy_weights' });
}
