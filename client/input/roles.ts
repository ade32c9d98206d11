import { InvalidArgumentError } from 'commander';
import { ROLE_SYNTAX, rolesIn } from '../../services/settings/index.ts';

/** `control,rollouts` as the worker takes it. */
export function workerRoles(text: string): string {
  const roles = rolesIn(text);
  if (!roles) throw new InvalidArgumentError(`It must be ${ROLE_SYNTAX}.`);
  return roles.join(',');
}
