import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { CliError, NoServer } from './errors.ts';
import { GrpcRetries } from './grpc-retries.ts';

/** A Temporal client and the names of what it talks to. */
export type Link = { readonly client: Client; readonly address: string; readonly namespace: string; close(): Promise<void> };

export const DEFAULT_NAMESPACE = 'default';
const CONNECT_TIMEOUT_MS = 3_000;

/** A server that comes back is noticed within a second; gRPC's own pauses between attempts grow to two minutes. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 250, 'grpc.max_reconnect_backoff_ms': 1_000 };

/**
 * Connects to the Temporal server that the environment or the profile file of the `temporal` CLI names, else to `defaultAddress`.
 * @throws NoServer when nothing answers there, CliError when the profile cannot be read.
 */
export function connectByProfile(defaultAddress: string): Promise<Link> {
  const profile = readProfile();
  const options = profile.connectionOptions as ConnectionOptions;
  return open(options, options.address ?? defaultAddress, profile.namespace ?? DEFAULT_NAMESPACE);
}

function readProfile(): ReturnType<typeof loadClientConnectConfig> {
  try {
    return loadClientConnectConfig();
  } catch (error) {
    throw new CliError(
      `the \`temporal\` CLI's connection settings cannot be used: ${(error as Error).message}. ` +
        'They come from the TEMPORAL_… variables and the profile file; see `temporal config --help`.',
    );
  }
}

/** Connects to this address whatever the environment says. @throws NoServer */
export const connectTo = (address: string): Promise<Link> => open({}, address, DEFAULT_NAMESPACE);

async function open(options: ConnectionOptions, address: string, namespace: string): Promise<Link> {
  const retries = new GrpcRetries();
  let connection: Connection;
  try {
    connection = await Connection.connect({
      ...options,
      address,
      connectTimeout: CONNECT_TIMEOUT_MS,
      interceptors: [retries.interceptor],
      channelArgs: { ...options.channelArgs, ...RECONNECT },
    });
  } catch {
    throw new NoServer(address);
  }
  const close = async () => {
    await retries.stop();
    await connection.close();
  };
  return { client: new Client({ connection, namespace }), address, namespace, close };
}
