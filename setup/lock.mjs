import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { say } from './console.mjs';

/** A holder shows that it lives by rewriting its file; one that stays silent this long is gone, even if its pid was given to another. */
const SILENT_MS = 60_000;
const SIGN_OF_LIFE_MS = 5_000;

/** Does `work` while no other set-up of this clone works. A lock left by a killed set-up is taken over. `who` holds it, for whoever waits. */
export async function withLock(lockFile, work, who = 'set-up') {
  mkdirSync(path.dirname(lockFile), { recursive: true });
  const id = `${process.pid}-${Math.random().toString(36).slice(2)}`;
  await acquire(lockFile, id, who);
  const beat = setInterval(() => showLife(lockFile, id), SIGN_OF_LIFE_MS);
  try {
    return await work();
  } finally {
    clearInterval(beat);
    if (read(lockFile)?.id === id) rmSync(lockFile, { force: true });
  }
}

/** Writes our entry beside the lock, whole, so that the lock itself never exists half written. */
function writeAside(lockFile, id) {
  const aside = `${lockFile}.${id}`;
  writeFileSync(aside, JSON.stringify({ id, pid: process.pid, at: Date.now() }));
  return aside;
}

function showLife(lockFile, id) {
  if (read(lockFile)?.id === id) renameSync(writeAside(lockFile, id), lockFile);
}

async function acquire(lockFile, id, who) {
  for (let told = false; ; ) {
    const aside = writeAside(lockFile, id);
    try {
      return linkSync(aside, lockFile); // fails when the lock exists, in one step
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    } finally {
      rmSync(aside, { force: true });
    }
    const holder = read(lockFile);
    if (holder !== null && isGone(holder)) takeAway(lockFile, holder, id);
    else {
      if (!told) say(`${who}: another ${who} is at work here (pid ${holder?.pid ?? 'unknown'}); waiting for it\n`);
      told = true;
      await sleep(250);
    }
  }
}

function read(lockFile) {
  try {
    return JSON.parse(readFileSync(lockFile, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return null; // just given back
    throw error;
  }
}

function isGone({ pid, at }) {
  if (Date.now() - at > SILENT_MS) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

/** Removes a dead holder's file, unless another waiter was faster and the file is already that one's: then it is put back. */
function takeAway(lockFile, holder, id) {
  const aside = `${lockFile}.${id}`;
  try {
    renameSync(lockFile, aside);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  if (read(aside)?.id !== holder.id) linkSync(aside, lockFile);
  rmSync(aside, { force: true });
}
