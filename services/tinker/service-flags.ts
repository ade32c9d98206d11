import { clientConfigSchema, dynamicConfigSchema, tokenSchema } from './answers.ts';
import type { Caller } from './caller.ts';
import { BadRequest, CredentialRefused } from './errors.ts';
import type { ChunkPolicy } from './loss-call.ts';

/** What the service wants of its clients; what it does not say is the protocol's default. */
export type ServiceFlags = { readonly chunks: ChunkPolicy; readonly mayCancelSamples: boolean };

/** Asks once, when a client starts; on the way it trades the API key for a token where the service wants one. */
export async function readFlags(caller: Caller): Promise<ServiceFlags> {
  const body = JSON.stringify({ sdk_version: caller.connection.protocolVersion });
  const call = (path: string) => ({ method: 'POST', path, body, phase: 'submit', subject: 'other' }) as const;
  const config = (await ifKnown(caller.json(call('client/config'), clientConfigSchema))) ?? {};
  if (config.pjwt_auth_enabled) {
    if (config.credential_default_source === 'credential_cmd') {
      throw new CredentialRefused('the service takes only keys from a credential command, which this client does not run', {
        call: 'client/config',
      });
    }
    const exchange = { ...call('auth/token'), body: '{}' };
    await caller.credential.useTokens(async (apiKey) => (await caller.json({ ...exchange, credential: apiKey }, tokenSchema)).jwt);
  }
  const dynamic = (await ifKnown(caller.json(call('client/dynamic_config'), dynamicConfigSchema))) ?? {};
  return {
    chunks: {
      maxDatums: config.fwdbwd_max_chunk_len ?? 1024,
      maxBytes: config.fwdbwd_max_chunk_bytes_count ?? 5_000_000,
      parallel: config.parallel_fwdbwd_chunks ?? true,
      compress: config.proto_compress_fwdbwd ?? false,
    },
    mayCancelSamples: dynamic.sample_cancel_enabled ?? false,
  };
}

/** Null when the server does not have the call. */
async function ifKnown<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof BadRequest && (error.status === 404 || error.status === 405)) return null;
    throw error;
  }
}
