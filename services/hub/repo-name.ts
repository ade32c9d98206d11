const PART = '[A-Za-z0-9][A-Za-z0-9._-]*';
const REPO = new RegExp(`^(${PART}/${PART})(?:@([A-Za-z0-9][A-Za-z0-9._-]*))?$`);

/** A repository of the hub, and which state of it: a branch, a tag or a commit. */
export type RepoName = { readonly repo: string; readonly revision: string };

/** Reads `org/name` or `org/name@revision`; null for what is no such name. */
export function repoNamed(text: string): RepoName | null {
  const [, repo, revision = 'main'] = REPO.exec(text) ?? [];
  // `..` and a doubled dash would be other folders of the cache than they look.
  if (repo === undefined || `${repo}/${revision}`.includes('..') || repo.includes('--')) return null;
  return { repo, revision };
}

export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);
