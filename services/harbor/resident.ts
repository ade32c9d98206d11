import { join } from 'node:path';
import { harborPython } from './python.ts';
import { HarborRunner } from './runner.ts';
import { sweepSandboxes } from './sweep.ts';

/** The one harbor process for all trials of a worker. */
export type ResidentRunner = {
  /** Starts it with the first call. */
  readonly get: () => Promise<HarborRunner>;
  /** The process, if there is one; null when none was started, or it could not be. */
  readonly started: () => Promise<HarborRunner | null>;
};

/** A runner that is started with its first trial. What dead ones left on this machine goes at once. */
export function residentRunner(projectRoot: string, stateDir: string): ResidentRunner {
  let starting: Promise<HarborRunner> | null = null;
  const options = async () => ({
    python: await harborPython(projectRoot),
    pluginDir: join(projectRoot, 'harbor_plugin'),
    agentsDir: join(stateDir, 'agents'),
    home: join(stateDir, 'harbor-home'),
  });
  const start = async () => HarborRunner.start(await options());
  options().then(sweepSandboxes, () => {}); // without a Python the first trial says so
  return {
    get: () => {
      starting ??= start().catch((error) => {
        starting = null;
        throw error;
      });
      return starting;
    },
    started: async () => starting?.catch(() => null) ?? null,
  };
}
