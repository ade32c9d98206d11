import { LOOPBACK } from '../services/processes/index.ts';
import { readAppSettings } from '../services/settings/index.ts';
import { COMMAND } from './command-name.ts';
import type { Link } from './connection.ts';
import { CliError } from './errors.ts';
import type { RunClient } from './run-client.ts';

/** Opens a connection, lends it to `use`, and closes it. The Temporal client is loaded only here: help and input errors need none of it. */
export async function withLink<T>(use: (link: Link) => Promise<T>): Promise<T> {
  const { connectByProfile } = await import('./connection.ts');
  const link = await connectByProfile(`${LOOPBACK}:${readAppSettings().temporal.port}`);
  try {
    return await use(link);
  } finally {
    await link.close();
  }
}

/** The same for one run. @throws CliError for an empty id, which the server would refuse in words about workflows. */
export async function withRun<T>(runId: string, use: (run: RunClient) => Promise<T>): Promise<T> {
  if (runId.trim() === '') throw new CliError(`the id of the run is empty; \`${COMMAND} runs\` lists runs`);
  const { RunClient } = await import('./run-client.ts');
  return withLink((link) => use(new RunClient(link, runId)));
}
