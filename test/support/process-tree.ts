import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A process of this machine. When it was born tells it from a later one that got the same pid. */
export type Process = { readonly pid: number; readonly parentPid: number; readonly born: string; readonly command: string };

const HAS_PROC = existsSync('/proc/self/stat');

/** Every process that runs now. */
export const processes = (): Process[] => (HAS_PROC ? fromProc() : fromPs());

function fromProc(): Process[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    const stat = read(`/proc/${pid}/stat`);
    // the name, in parentheses, may hold anything; see proc(5)
    const [state, parentPid, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (stat === '' || state === 'Z') return [];
    const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    return [{ pid: Number(pid), parentPid: Number(parentPid), born: rest[17] ?? '', command }];
  });
}

/** Empty for a process that has ended. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function fromPs(): Process[] {
  const lines = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,lstart=,command='], { encoding: 'utf8' }).split('\n');
  return lines.flatMap((line) => {
    const [, pid, parentPid, born = '', command = ''] = /^\s*(\d+)\s+(\d+)\s+(.{24})\s+(.*)$/.exec(line) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), parentPid: Number(parentPid), born, command }];
  });
}

/** What a process started, and what that started, as far as it runs now. */
export function descendants(pid: number, all: readonly Process[] = processes()): Process[] {
  return all.filter(({ parentPid }) => parentPid === pid).flatMap((child) => [child, ...descendants(child.pid, all)]);
}

/** Which of `known` still run, and what else runs with one of `paths` in its command. */
export function leftOf(known: readonly Process[], paths: readonly string[]): Process[] {
  return processes().filter(
    ({ pid, born, command }) =>
      known.some((other) => other.pid === pid && other.born === born) || paths.some((path) => command.includes(path)),
  );
}

/** Folders of trials and (Linux) of sandboxes that these processes use, by their name or the lock in them. */
export function scratchDirs(owners: readonly Process[]): string[] {
  const locks = owners.flatMap(({ pid }) => openFiles(pid)).filter((path) => /\/stillroom-harbor-[^/]+\/lock$/.test(path));
  const trials = ['/dev/shm', tmpdir()].flatMap((root) =>
    (existsSync(root) ? readdirSync(root) : []).filter((name) => isTrialsDirOf(name, owners)).map((name) => join(root, name)),
  );
  return [...locks.map((path) => dirname(path)), ...trials];
}

const isTrialsDirOf = (name: string, owners: readonly Process[]) =>
  owners.some(({ pid }) => new RegExp(`^stillroom-trials-\\w+-${pid}-`).test(name));

/** Paths of files that a process has open, less those that it closes meanwhile; none where that cannot be seen. */
function openFiles(pid: number): string[] {
  const unlessGone = <T>(read: () => T[]): T[] => {
    try {
      return read();
    } catch {
      return [];
    }
  };
  const fds = unlessGone(() => readdirSync(`/proc/${pid}/fd`));
  return fds.flatMap((fd) => unlessGone(() => [readlinkSync(`/proc/${pid}/fd/${fd}`)]));
}
