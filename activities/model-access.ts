import type { ModelRef } from '../core/run/trial.ts';
import { SamplerBusy, SamplerOverflow, SamplerUnavailable, SamplerUnpaid, type TokenSampler } from '../services/gateway/index.ts';
import {
  BillingPaused,
  type Capabilities,
  ofUnsentCall,
  RetryLater,
  type Sampler,
  SessionLost,
  type TinkerClient,
  type WaitReport,
} from '../services/tinker/index.ts';
import { namingBilling } from './billing.ts';
import type { ResumingSampler } from './recorded-sampler.ts';
import { overflowIn, refusedAsTooLong } from './sampler-overflow.ts';
import { ServiceWaits } from './service-waits.ts';

/** One session with the service, and what was opened in it. */
type Session = {
  readonly client: Promise<TinkerClient>;
  readonly samplers: Map<string, Promise<Sampler>>;
  /** Calls that use it now. */
  users: number;
};

/** Opens a session, or joins the one that is named; `onWait` is where the client reports its waits. */
export type Connect = (onWait: ServiceWaits['note'], sessionId?: string) => Promise<TinkerClient>;

/**
 * This worker's connection to the Tinker service: one session, opened when first needed and kept alive, and one sampler per set of
 * weights. A lost session is replaced on the next call; what was sampled from it stays valid. A service that wants payment fails calls as
 * `BillingPaused`.
 */
export class ModelAccess implements AsyncDisposable {
  private readonly connect: Connect;
  private readonly waits = new ServiceWaits();
  private session: Session | null = null;
  private capabilities: Promise<Capabilities> | null = null;

  constructor(connect: Connect) {
    this.connect = connect;
  }

  /** What this worker's calls of the service wait for; null when they do not. */
  readonly longestWait = (): WaitReport | null => this.waits.longest();

  /** A session besides this worker's own; whoever asks for it closes or leaves it. */
  openSession(): Promise<TinkerClient> {
    return this.connect(this.waits.note);
  }

  /** The same for a session that another process may have opened. */
  joinSession(sessionId: string): Promise<TinkerClient> {
    return this.connect(this.waits.note, sessionId);
  }

  /** Runs `work` with the client; forgets its session if the service has lost it, so that a retry gets a new one. */
  withClient<T>(work: (client: TinkerClient) => Promise<T>): Promise<T> {
    return namedBilling(this.inSession(async ({ client }) => work(await client)));
  }

  /** The same with a sampler of `model`. */
  withSampler<T>(model: ModelRef, work: (sampler: Sampler) => Promise<T>): Promise<T> {
    return namedBilling(this.sampling(model, work));
  }

  /** The same with the service's own errors, which say what became of a call. */
  sampling<T>(model: ModelRef, work: (sampler: Sampler) => Promise<T>): Promise<T> {
    return this.inSession(async (session) => work(await samplerOf(model, session).catch(unsent)));
  }

  /** The model, with the service's own errors; every span carries `model.version`. */
  tokenSampler(model: ModelRef): ResumingSampler {
    const sample: ResumingSampler['sample'] = (request) => this.sampling(model, (sampler) => sampler.sample(request));
    return { version: model.version, sample: (request) => sample(request).catch(refusedAsTooLong) };
  }

  /** The longest sequence the service takes for a model; null where it does not say. @throws when it does not know the model */
  async contextLimitTokens(model: string): Promise<number | null> {
    this.capabilities ??= this.withClient((client) => client.capabilities());
    this.capabilities.catch(() => {
      this.capabilities = null;
    });
    const found = (await this.capabilities).supportedModels.find((supported) => supported.modelName === model);
    if (!found) {
      this.capabilities = null; // one that is added later is found by the next try
      throw new Error(`the service does not list the model ${model}: check its name`);
    }
    return found.maxContextLength;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const client = await this.session?.client.catch(() => null);
    this.session = null;
    await client?.close();
  }

  private async inSession<T>(work: (session: Session) => Promise<T>): Promise<T> {
    this.session ??= { client: this.connect(this.waits.note), samplers: new Map(), users: 0 };
    const { session } = this;
    // Only this call's own session: one that came after it is alive, however many calls met the lost one.
    const forget = () => {
      if (this.session === session) this.session = null;
    };
    session.client.catch(forget);
    session.users++;
    try {
      return await work(session);
    } catch (error) {
      if (error instanceof SessionLost) forget();
      throw error;
    } finally {
      session.users--;
      if (this.session !== session && session.users === 0) void closed(session);
    }
  }
}

/** One that was forgotten: its heartbeats would go on for ever. */
async function closed({ client }: Session): Promise<void> {
  await client.then((client) => client.close('errored')).catch(() => {});
}

/** Without a session or a sampler nothing was asked of the model. */
const unsent = (error: unknown): never => {
  throw ofUnsentCall(error);
};

function samplerOf(model: ModelRef, { client, samplers }: Session): Promise<Sampler> {
  const [key, source] = model.kind === 'sampler' ? [model.path, { samplerPath: model.path }] : [model.model, { baseModel: model.model }];
  const known = samplers.get(key);
  if (known) return known;
  const made = client.then((client) => client.sampler(source));
  samplers.set(key, made);
  made.catch(() => samplers.delete(key));
  return made;
}

const namedBilling = <T>(work: Promise<T>): Promise<T> => work.catch((error) => Promise.reject(namingBilling(error)));

const RETRY_AFTER_MS = 5_000;

/** The same sampler for the gateway: its errors say what the agent should do. */
export function forGateway({ version, sample }: TokenSampler): TokenSampler {
  return { version, sample: (request) => sample(request).catch((error) => Promise.reject(asGatewayError(error, request.prompt.length))) };
}

/** What an agent should hear of a service's failure: wait, that there is no model now, or that its prompt is too long. */
function asGatewayError(error: unknown, promptTokens: number): unknown {
  const overflow = overflowIn(error);
  if (overflow) return new SamplerOverflow((error as Error).message, promptTokens, overflow.limitTokens);
  if (error instanceof RetryLater) return new SamplerBusy(error.message, RETRY_AFTER_MS);
  if (error instanceof BillingPaused) return new SamplerUnpaid(error.message);
  if (error instanceof SessionLost) return new SamplerUnavailable(error.message);
  return error;
}
