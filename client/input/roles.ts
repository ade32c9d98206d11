import { InvalidArgumentError } from 'commander';

export const ROLES = ['control', 'rollouts', 'training'] as const;

/** `control,rollouts` as the worker takes it. */
export function workerRoles(text: string): string {
  const roles = text.split(',').map((role) => role.trim());
  const unknown = roles.filter((role) => !ROLES.some((known) => known === role));
  if (unknown.length > 0) throw new InvalidArgumentError(`Roles are ${ROLES.join(', ')}; separate them with commas.`);
  return [...new Set(roles)].join(',');
}
