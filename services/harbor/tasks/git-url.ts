/** Schemes that git may be sent to; `ext::` and the like run commands. */
const SCHEMES = ['https', 'http', 'ssh', 'git', 'file'] as const;

/** What `git` itself is told: no helper that an address could name is ever run. */
export const ALLOWED_PROTOCOLS = SCHEMES.join(':');

/** Why an address is none that tasks are fetched from; null when it is one. The address is not repeated: it may hold a secret. */
export function gitUrlProblem(url: string): string | null {
  if (/[\s\p{Cc}]/u.test(url) || url.startsWith('-')) return 'is no address of a git repository';
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined) {
    if (/^[\w.-]+@[\w.-]+:[^:]+$/.test(url)) return null;
    return `must be an ${SCHEMES.join('://, ')}:// address or user@host:path; a folder on this machine is file:///its/path`;
  }
  if (!(SCHEMES as readonly string[]).includes(scheme)) return `${scheme}:// is not used: take one of ${SCHEMES.join(', ')}`;
  if (!URL.canParse(url)) return 'is no address of a git repository';
  const { username, password, search, hash } = new URL(url);
  if (password !== '' || (username !== '' && scheme !== 'ssh'))
    return 'must not hold a user name or a password: what a run is given is kept in its history. Let git find them (credential helper, ssh agent)';
  if (search !== '' || hash !== '')
    return 'must not hold a query or a fragment: what a run is given is kept in its history. Let git find credentials by itself';
  return null;
}

/** Why a path is no folder within a repository; null when it is one. */
export function repositoryPathProblem(path: string): string | null {
  const tidy = tidyRepositoryPath(path);
  if (path.startsWith('/') || path.includes('\\') || /\p{Cc}/u.test(path))
    return 'must be relative to the repository, with forward slashes';
  if (tidy === null) return 'must stay within the repository';
  return tidy === '' ? "must name the task's folder in the repository" : null;
}

/** `a/./b/../c` as `a/c`; null for a path that leads out. */
export function tidyRepositoryPath(path: string): string | null {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return parts.join('/');
}

/** A whole commit id, which always means the same content. */
export const isCommit = (ref: string) => /^([0-9a-f]{40}|[0-9a-f]{64})$/i.test(ref);

/** Why a text is no branch, tag or commit; null when it may be one. */
export function refProblem(ref: string): string | null {
  return /^(?!-)[^\s~^:?*[\\\p{Cc}]+$/u.test(ref) && !ref.includes('..') ? null : 'is no branch, tag or commit';
}
