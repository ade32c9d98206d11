import { Socket } from 'node:net';

/** Set by whoever starts us with a pipe on this descriptor; the pipe closes when that process ends, even by SIGKILL. */
export const PARENT_FD_VARIABLE = 'STILLROOM_PARENT_FD';

/**
 * Calls `onOrphaned` once when the process that started us is gone. Does nothing when we were started by hand.
 * The variable is taken out of the environment, so that our own children do not mistake it for theirs. The watch does not keep us running.
 */
export function endWithParent(onOrphaned: () => void): void {
  const given = process.env[PARENT_FD_VARIABLE];
  delete process.env[PARENT_FD_VARIABLE];
  if (given === undefined) return;
  const fd = Number(given);
  if (!Number.isInteger(fd)) throw new Error(`${PARENT_FD_VARIABLE} must be a descriptor number; got "${given}"`);
  const pipe = new Socket({ fd, readable: true, writable: false });
  let called = false;
  const orphaned = () => {
    if (called) return;
    called = true;
    onOrphaned();
  };
  pipe.on('end', orphaned).on('error', orphaned).on('close', orphaned).resume().unref();
}
