import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection } from '@temporalio/worker';

/** Where Temporal is found when neither a profile nor a variable says so. */
const DEFAULT_ADDRESS = 'localhost:7233';
const DEFAULT_NAMESPACE = 'default';

/** gRPC's numbers of refusals that no waiting mends. */
const NOT_FOUND = 5;

/** No use to begin with this server: what is wrong, and what to do. `exitCode` is 2 where a person must act, 1 where time may help. */
export class NoTemporal extends Error {
  readonly exitCode: number;
  override readonly name = 'NoTemporal';

  constructor(message: string, exitCode: 1 | 2) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Connects a worker to the server and namespace that the profile file or the variables of the `temporal` CLI name.
 * @throws NoTemporal when these cannot be read, nothing answers, or there is no such namespace.
 */
export async function connectWorker(): Promise<{ readonly connection: NativeConnection; readonly namespace: string }> {
  const { connectionOptions, namespace = DEFAULT_NAMESPACE } = readProfile();
  const address = connectionOptions.address ?? DEFAULT_ADDRESS;
  const connection = await NativeConnection.connect(connectionOptions).catch((error: Error) => {
    throw new NoTemporal(
      `no Temporal server answers at ${address} (${reasonIn(error)}); name another with TEMPORAL_ADDRESS or TEMPORAL_PROFILE`,
      1,
    );
  });
  try {
    await connection.workflowService.describeNamespace({ namespace });
  } catch (error) {
    await connection.close();
    const { code, message } = error as Error & { code?: number };
    if (code === NOT_FOUND)
      throw new NoTemporal(
        `there is no namespace ${namespace} at ${address}. Run: temporal operator namespace create --namespace ${namespace}`,
        2,
      );
    throw new NoTemporal(`the Temporal server at ${address} does not serve the namespace ${namespace} to us: ${message}`, 1);
  }
  return { connection, namespace };
}

function readProfile(): ReturnType<typeof loadClientConnectConfig> {
  try {
    return loadClientConnectConfig();
  } catch (error) {
    throw new NoTemporal(
      `the connection settings of the \`temporal\` CLI cannot be used: ${(error as Error).message}. ` +
        'They come from the TEMPORAL_… variables and the profile file; see `temporal config --help`.',
      2,
    );
  }
}

/** What a person can use of a transport error's structure in words. */
const reasonIn = ({ message }: Error) => /message: "([^"]+)"/.exec(message)?.[1] ?? message;
