import { randomBytes } from 'node:crypto';
import { CliError } from '../errors.ts';

/** `run-20250131-1a2b3c`: the day for people, the rest so that no two runs share a name. */
export function freshRunId(prefix: string, now: Date): string {
  return `${prefix}-${now.toISOString().slice(0, 10).replaceAll('-', '')}-${randomBytes(3).toString('hex')}`;
}

/** A run's id is also a folder's name. @throws CliError when it cannot be one. */
export function checkedRunId(id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(id))
    throw new CliError(`--id "${id}": use up to 100 letters, digits, ".", "_" and "-", beginning with a letter or digit`);
  return id;
}
