import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NoServer } from './errors.ts';

/** A Temporal client and the names of what it talks to. */
export type Link = { readonly client: Client; readonly address: string; readonly namespace: string; close(): Promise<void> };

/** What this product uses when neither the environment nor the `temporal` CLI's profile names a server. */
export type LinkDefaults = { readonly address: string; readonly namespace: string };

const CONNECT_TIMEOUT_MS = 5_000;

/** A server that comes back is noticed within a second; gRPC's own pauses between attempts grow to two minutes. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 250, 'grpc.max_reconnect_backoff_ms': 1_000 };

/**
 * Connects to the Temporal server that the environment or the profile file of the `temporal` CLI names.
 * @throws NoServer when nothing answers there.
 */
export async function connect(defaults: LinkDefaults): Promise<Link> {
  const profile = loadClientConnectConfig();
  const options = profile.connectionOptions as ConnectionOptions;
  const address = options.address ?? defaults.address;
  const namespace = profile.namespace ?? defaults.namespace;
  let connection: Connection;
  try {
    connection = await Connection.connect({
      ...options,
      address,
      connectTimeout: CONNECT_TIMEOUT_MS,
      channelArgs: { ...options.channelArgs, ...RECONNECT },
    });
  } catch {
    throw new NoServer(address);
  }
  return { client: new Client({ connection, namespace }), address, namespace, close: () => connection.close() };
}
