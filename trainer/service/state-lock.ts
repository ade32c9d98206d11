import { createHash } from 'node:crypto';
import { realpathSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StateError } from './failures.ts';

/**
 * Keeps two services from writing into one state folder. The lock is a listening socket, so it ends with its process, however that dies;
 * the socket lies in the temporary folder because socket paths must be short. Throws StateError when the folder is taken.
 */
export async function lockState(folder: string): Promise<Server> {
  const name = createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 24);
  const path = join(tmpdir(), `stillroom-trainer-${name}.sock`);
  try {
    return await listen(path);
  } catch {
    if (await answers(path))
      throw new StateError(`--state ${folder}: another trainer is using this folder; stop it or choose another folder`);
    rmSync(path, { force: true });
    return await listen(path);
  }
}

function listen(path: string): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const server = createServer((socket) => socket.destroy());
  server.once('error', reject);
  server.listen(path, () => resolve(server));
  server.unref();
  return promise;
}

function answers(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path);
  socket.once('connect', () => {
    socket.destroy();
    resolve(true);
  });
  socket.once('error', () => resolve(false));
  return promise;
}
