import { z } from 'zod';
import type { Caller } from '../http/caller.ts';
import { type AuditEntry, auditLog } from './audit.ts';
import { Billing } from './billing.ts';
import { type Capabilities, serverCapabilities } from './capabilities.ts';
import { Checkpoints } from './checkpoints.ts';
import { getJson } from './request.ts';
import { Sessions } from './sessions.ts';
import { TrainingRuns } from './training-runs.ts';
import { Weights } from './weights.ts';

/** What a sampling session samples from; `samplerPath` is null when it is the base model. */
export type SamplerInfo = { readonly id: string; readonly baseModel: string; readonly samplerPath: string | null };

const samplerSchema = z.object({ sampler_id: z.string(), base_model: z.string(), model_path: z.string().nullish() });

/** The part of the protocol that answers at once and needs no session. */
export class Rest {
  readonly trainingRuns: TrainingRuns;
  readonly checkpoints: Checkpoints;
  readonly weights: Weights;
  readonly sessions: Sessions;
  readonly billing: Billing;
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.trainingRuns = new TrainingRuns(caller);
    this.checkpoints = new Checkpoints(caller);
    this.weights = new Weights(caller);
    this.sessions = new Sessions(caller);
    this.billing = new Billing(caller);
  }

  /** The models that the service offers. */
  capabilities(): Promise<Capabilities> {
    return serverCapabilities(this.#caller);
  }

  /** @throws BadRequest when there is no such sampling session, or the service does not have the call */
  async sampler(samplingSessionId: string): Promise<SamplerInfo> {
    const { sampler_id, base_model, model_path } = await getJson(this.#caller, `samplers/${samplingSessionId}`, {}, samplerSchema);
    return { id: sampler_id, baseModel: base_model, samplerPath: model_path ?? null };
  }

  auditLog(options: { readonly eventType?: string; readonly day?: string } = {}): Promise<AuditEntry[]> {
    return auditLog(this.#caller, options);
  }
}
