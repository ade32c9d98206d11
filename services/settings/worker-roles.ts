/** What a worker process can do; each role has its own task queue. */
export const ROLES = ['control', 'rollouts', 'training'] as const;
export type Role = (typeof ROLES)[number];

/** What stands for every role. */
export const ALL_ROLES = 'all';

/** How roles are written, for help texts and messages. */
export const ROLE_SYNTAX = `${ROLES.join(', ')}, several of them with commas, or ${ALL_ROLES}`;

/** The roles in `all`, `rollouts` or `control,training`, each once and in the order of `ROLES`; null when a name is none of them. */
export function rolesIn(text: string): Role[] | null {
  if (text.trim() === ALL_ROLES) return [...ROLES];
  const names = text.split(',').map((name) => name.trim());
  return names.every((name) => ROLES.some((role) => role === name)) ? ROLES.filter((role) => names.includes(role)) : null;
}
