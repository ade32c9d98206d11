import type { SamplerPath, StatePath } from '../../core/ids.ts';
import { checkpointsSchema } from './answers.ts';
import type { Caller } from './caller.ts';
import { BadRequest } from './errors.ts';
import type { HttpCall } from './http.ts';

export type Checkpoint = {
  /** `weights/<name>` or `sampler_weights/<name>`. */
  readonly id: string;
  /** `training`, `sampler` or `external`. */
  readonly type: string;
  readonly path: string;
  /** ISO 8601; null when the service does not say. */
  readonly savedAt: string | null;
  readonly sizeBytes: number | null;
  readonly expiresAt: string | null;
};

/** Saved weights: list, delete, let expire. */
export class Checkpoints {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** What a model has saved. */
  async list(modelId: string): Promise<Checkpoint[]> {
    const { checkpoints } = await this.#caller.json(
      { method: 'GET', path: `training_runs/${modelId}/checkpoints`, phase: 'submit', subject: 'other' },
      checkpointsSchema,
    );
    return checkpoints.map((checkpoint) => ({
      id: checkpoint.checkpoint_id,
      type: checkpoint.checkpoint_type,
      path: checkpoint.tinker_path,
      savedAt: checkpoint.time ?? null,
      sizeBytes: checkpoint.size_bytes ?? null,
      expiresAt: checkpoint.expires_at ?? null,
    }));
  }

  /** @throws BadRequest when there is no such checkpoint */
  async delete(path: SamplerPath | StatePath): Promise<void> {
    await this.#caller.send({ method: 'DELETE', path: checkpointUrl(path), phase: 'submit', subject: 'other' });
  }

  /**
   * Lets the checkpoint expire that many seconds from now (3600 .. 10 years), or never with null.
   * Returns false when the service has no expiry.
   */
  async setTtl(path: SamplerPath | StatePath, ttlSeconds: number | null): Promise<boolean> {
    const call: HttpCall = { method: 'PUT', path: `${checkpointUrl(path)}/ttl`, body: JSON.stringify({ ttl_seconds: ttlSeconds }) };
    try {
      await this.#caller.send({ ...call, phase: 'submit', subject: 'other' });
      return true;
    } catch (error) {
      if (error instanceof BadRequest && (error.status === 404 || error.status === 405)) return false;
      throw error;
    }
  }
}

/** The id keeps its slash: `training_runs/<run>/checkpoints/weights/<name>`. */
function checkpointUrl(path: string): string {
  const [, run, kind, name] = /^tinker:\/\/([^/]+)\/(weights|sampler_weights|external_weights)\/([^/]+)$/.exec(path) ?? [];
  if (run === undefined) throw new BadRequest(`"${path}" is not tinker://<run>/<kind>/<name>`, { call: 'checkpoints' });
  return `training_runs/${run}/checkpoints/${kind}/${name}`;
}
