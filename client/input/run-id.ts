import { randomBytes } from 'node:crypto';
import { runIdProblem } from '../../core/run/run-id.ts';
import { CliError } from '../errors.ts';

/** `run-20250131-1a2b3c`: the day for people, the rest so that no two runs share a name. */
export function freshRunId(prefix: string, now: Date): string {
  return `${prefix}-${now.toISOString().slice(0, 10).replaceAll('-', '')}-${randomBytes(3).toString('hex')}`;
}

/** A run's id is also a folder's name. @throws CliError when it cannot be one. */
export function checkedRunId(id: string): string {
  const problem = runIdProblem(id);
  if (problem !== null) throw new CliError(`--id "${id}": ${problem}`);
  return id;
}
