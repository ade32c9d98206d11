import { join } from 'node:path';
import type { RunnerVariables } from '../settings/index.ts';
import { harborPython } from './python.ts';
import { removeTree } from './remove-tree.ts';
import { HarborRunner } from './runner.ts';
import { makeScratchDir, sweepScratch } from './scratch.ts';
import { sweepSandboxes } from './sweep.ts';

/** The one harbor process for all trials of a worker. */
export type ResidentRunner = AsyncDisposable & {
  /** Its process is started with the first trial, and again after each death. @throws BadHarborInput without a Python for it */
  readonly get: () => Promise<HarborRunner>;
};

export type ResidentOptions = {
  readonly projectRoot: string;
  readonly stateDir: string;
  /** What it gets of the worker's environment. */
  readonly variables: RunnerVariables;
};

/**
 * A worker's own runner. Its HOME, where harbor keeps caches that processes must not share, is this worker's alone. What dead workers and
 * runners left on this machine goes at once; disposing ends the runner and removes its HOME.
 */
export function residentRunner({ projectRoot, stateDir, variables }: ResidentOptions): ResidentRunner {
  const homes = join(stateDir, 'harbor');
  const plugin = {
    pluginDir: join(projectRoot, 'harbor_plugin'),
    agentsDir: join(stateDir, 'agents'),
    env: variables.env,
    secrets: variables.secrets,
  };
  let made: Promise<{ readonly runner: HarborRunner; readonly home: string }> | null = null;
  const make = async () => {
    const python = await harborPython(projectRoot);
    const home = await makeScratchDir(homes, 'home');
    return { home, runner: new HarborRunner({ ...plugin, python, home }) };
  };
  void sweepScratch(homes, 'home');
  // Without a Python the first trial says so. A sweep needs no HOME.
  harborPython(projectRoot).then(
    (python) => sweepSandboxes({ ...plugin, python, home: homes }),
    () => {},
  );
  return {
    get: async () => {
      made ??= make().catch((error) => {
        made = null;
        throw error;
      });
      return (await made).runner;
    },
    [Symbol.asyncDispose]: async () => {
      const kept = await made?.catch(() => null);
      if (!kept) return;
      await kept.runner.close();
      await removeTree(kept.home).catch(() => {});
    },
  };
}
