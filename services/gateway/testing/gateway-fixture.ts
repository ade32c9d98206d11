import { afterAll, beforeAll } from 'vitest';
import type { TrialId } from '../../../core/ids.ts';
import { type Gateway, type GatewaySession, startGateway, type TrialOptions } from '../index.ts';
import { tinyAsciiRenderer } from '../renderers/tiny-ascii.ts';
import type { TokenSampler } from '../token-sampler.ts';

export const user = (content: string) => ({ role: 'user', content });
export const assistant = (content: string) => ({ role: 'assistant', content });
export const ask = { model: 'tiny', messages: [user('go')] };

/** A gateway at a real socket for the tests of one file: small limits, so that each is easily met. */
export function gatewayFixture() {
  let gateway: Gateway;
  let trials = 0;
  beforeAll(async () => {
    gateway = await startGateway({ host: '127.0.0.1', port: 0, maxBodyBytes: 4096, pingMs: 20 });
  });
  afterAll(() => gateway.close());

  return {
    url: () => gateway.url,
    /** Opens a trial of its own id (with characters that a URL must escape), 64 tokens of context, 16 a call. */
    open(sampler: TokenSampler, over: Partial<TrialOptions> = {}): GatewaySession & { readonly trialId: TrialId } {
      const trialId = `copy sun/${trials++}` as TrialId;
      const renderer = tinyAsciiRenderer();
      const options = {
        trialId,
        modelName: 'tiny',
        sampler,
        renderer,
        contextLimitTokens: 64,
        maxTokensPerCall: 16,
        temperature: 1,
        ...over,
      };
      return Object.assign(gateway.open(options), { trialId: options.trialId });
    },
    /** Asks for a chat completion; a string body goes out as it is. */
    post(session: GatewaySession, body: unknown, { key = session.apiKey, signal }: { key?: string; signal?: AbortSignal } = {}) {
      return fetch(`${session.apiBase}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal ? { signal } : {}),
      });
    },
  };
}

type ErrorFields = { readonly code: string; readonly message: string; readonly param: string | null; readonly type: string };

/** An error answer, flat; of a success only the status. */
export async function failure(response: Response): Promise<{ readonly status: number } & Partial<ErrorFields>> {
  const { error } = (await response.json()) as { error?: ErrorFields };
  return { status: response.status, ...error };
}
