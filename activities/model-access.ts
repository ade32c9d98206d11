import type { ModelRef } from '../core/run/trial.ts';
import { SamplerBusy, SamplerUnavailable, type TokenSampler } from '../services/gateway/index.ts';
import { BillingPaused, type Capabilities, RetryLater, type Sampler, SessionLost, type TinkerClient } from '../services/tinker/index.ts';

/**
 * This worker's connection to the Tinker service: one session, opened when first needed and kept alive, and one sampler per set of
 * weights. A lost session is replaced on the next call; what was sampled from it stays valid.
 */
export class ModelAccess implements AsyncDisposable {
  private readonly connect: () => Promise<TinkerClient>;
  private connecting: Promise<TinkerClient> | null = null;
  private capabilities: Promise<Capabilities> | null = null;
  private samplers = new Map<string, Promise<Sampler>>();

  constructor(connect: () => Promise<TinkerClient>) {
    this.connect = connect;
  }

  client(): Promise<TinkerClient> {
    this.connecting ??= this.connect().catch((error) => {
      this.connecting = null;
      throw error;
    });
    return this.connecting;
  }

  /** Runs `work` with a sampler of `model`; forgets the session if the service has lost it, so that a retry gets a new one. */
  async withSampler<T>(model: ModelRef, work: (sampler: Sampler) => Promise<T>): Promise<T> {
    try {
      return await work(await this.samplerOf(model));
    } catch (error) {
      if (error instanceof SessionLost) this.forget();
      throw error;
    }
  }

  /** The model as the gateway wants it; every span carries `model.version`. */
  tokenSampler(model: ModelRef): TokenSampler {
    return {
      version: model.version,
      sample: (request) =>
        this.withSampler(model, (sampler) => sampler.sample(request)).catch((error) => Promise.reject(asGatewayError(error))),
    };
  }

  /** The longest sequence the service takes for a model; null where it does not say. @throws when it does not know the model */
  async contextLimitTokens(model: string): Promise<number | null> {
    this.capabilities ??= this.client().then((client) => client.capabilities());
    this.capabilities.catch(() => {
      this.capabilities = null;
    });
    const found = (await this.capabilities).supportedModels.find((supported) => supported.modelName === model);
    if (!found) throw new Error(`the service does not list the model ${model}: check its name`);
    return found.maxContextLength;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const client = await this.connecting?.catch(() => null);
    this.forget();
    await client?.close();
  }

  private samplerOf(model: ModelRef): Promise<Sampler> {
    const key = model.kind === 'sampler' ? model.path : model.model;
    const known = this.samplers.get(key);
    if (known) return known;
    const made = this.client().then((client) =>
      client.sampler(model.kind === 'sampler' ? { samplerPath: model.path } : { baseModel: model.model }),
    );
    this.samplers.set(key, made);
    made.catch(() => this.samplers.delete(key));
    return made;
  }

  private forget(): void {
    this.connecting = null;
    this.samplers = new Map();
  }
}

const RETRY_AFTER_MS = 5_000;

/** What an agent should hear of a service's failure: wait, or that there is no model now. */
function asGatewayError(error: unknown): unknown {
  if (error instanceof RetryLater) return new SamplerBusy(error.message, RETRY_AFTER_MS);
  if (error instanceof BillingPaused || error instanceof SessionLost) return new SamplerUnavailable(error.message);
  return error;
}
