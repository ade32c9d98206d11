import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

/** The root of the project: where the settings, `examples/` and `.stillroom/` are. */
export const PROJECT_ROOT = path.resolve(import.meta.dirname, '..', '..');

const SETUP_FILE = path.join('.stillroom', 'setup.json');

const SetupRecord = z.strictObject({
  node: z.string(),
  python: z.string(),
  temporal: z.string(),
  temporalTestServer: z.string(),
  bwrap: z.string().nullable(),
});

/** What set-up found on this machine, all as commands that run. */
export type Environment = {
  /** Node 24, for our own programs. */
  readonly node: string;
  /** The private Python that has harbor. */
  readonly python: string;
  /** The Temporal CLI. */
  readonly temporal: string;
  /** Temporal's time-skipping test server. */
  readonly temporalTestServer: string;
  /** Bubblewrap; null where no sandbox can be started. */
  readonly bwrap: string | null;
  /** `plain` (no isolation of what the model runs) only when a person asked for it by name. */
  readonly sandbox: 'bwrap' | 'plain';
};

/** Set-up was not run here, or its record is not ours. */
export class EnvironmentMissing extends Error {
  readonly exitCode = 2;
  override readonly name = 'EnvironmentMissing';
}

/** Reads what set-up found. Fails with EnvironmentMissing, which says what to run. `STILLROOM_SANDBOX` chooses the sandbox. */
export function readEnvironment(root: string = PROJECT_ROOT, variables: NodeJS.ProcessEnv = process.env): Environment {
  const file = path.join(root, SETUP_FILE);
  if (!existsSync(file)) throw new EnvironmentMissing(`${SETUP_FILE} is missing: set-up was not run here. Run \`npm run setup\`.`);
  const record = SetupRecord.safeParse(parseJson(readFileSync(file, 'utf8')));
  if (!record.success)
    throw new EnvironmentMissing(`${SETUP_FILE} is not what set-up writes:\n${z.prettifyError(record.error)}\nRun \`npm run setup\`.`);
  return { ...record.data, sandbox: sandboxMode(variables.STILLROOM_SANDBOX) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the schema says that this is no object
  }
}

function sandboxMode(given: string | undefined): 'bwrap' | 'plain' {
  if (given === undefined || given === '' || given === 'bwrap') return 'bwrap';
  if (given === 'plain') return 'plain';
  throw new EnvironmentMissing(`STILLROOM_SANDBOX must be "bwrap" or "plain"; got "${given}"`);
}
