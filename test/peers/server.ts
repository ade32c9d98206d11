import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../../services/processes/child.ts';
import { freePorts } from '../../services/processes/index.ts';
import { ProcessLog } from '../../services/processes/process-log.ts';
import type { Peer } from './peers.ts';

const START_LIMIT_MS = 180_000;
const models = join(import.meta.dirname, 'models');

/** Runs the peer while `work` uses it; it is gone afterwards, and if we die. `folder`: for what the server writes, emptied first. */
export async function whileServing<T>(peer: Peer, python: string, folder: string, work: (baseUrl: string) => Promise<T>): Promise<T> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const [port = 0] = await freePorts(1);
  const baseUrl = `http://127.0.0.1:${port}`;
  const log = new ProcessLog(folder, 'server');
  const server = new Child(
    {
      name: peer.name,
      command: python,
      ...peer.launch({ python, port, folder }),
      // The model is named by its folder, relative: so its name is the same on every machine.
      cwd: models,
      ready: { kind: 'check', isReady: async (signal) => (await fetch(`${baseUrl}/api/v1/healthz`, { signal })).ok },
      readyTimeoutMs: START_LIMIT_MS,
      leash: 'wrapper',
    },
    log,
  );
  try {
    await server.ready();
    return await work(baseUrl);
  } catch (error) {
    console.error(`the last lines of ${log.file}:\n${log.tail(15)}`);
    throw error;
  } finally {
    await server.stop();
    log.close();
  }
}
