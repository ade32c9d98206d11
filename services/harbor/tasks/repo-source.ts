import { BadHarborInput } from '../errors.ts';
import { gitUrlProblem, isCommit, refProblem } from './git-url.ts';

/** A dataset's `repo`, taken apart: `org/name`, `host/org/name`, an address, with `@ref` or `/tree/<ref>/<folder>` behind it. */
export type RepoSource = { readonly url: string; readonly ref: string | null; readonly subdir: string | null };

/** Reads a `repo` as harbor 0.25 does. @throws BadHarborInput for what harbor would refuse */
export function parseRepo(given: string): RepoSource {
  const source = given.trim();
  if (source === '' || /^[./~]/.test(source))
    throw new BadHarborInput('must be org/name, host/org/name or an address of a git repository; a folder here is named by "path" alone');
  const [base, ref] = splitRef(source);
  const repo = /^(https?|ssh|git):\/\//i.test(base)
    ? fromUrl(base, ref)
    : base.startsWith('git@')
      ? { url: base, ref, subdir: null }
      : fromName(base, ref);
  const problem = gitUrlProblem(repo.url) ?? (repo.ref === null ? null : refProblem(repo.ref));
  if (problem !== null) throw new BadHarborInput(problem);
  return repo;
}

function fromName(base: string, ref: string | null): RepoSource {
  const parts = base.split('/').filter((part) => part !== '');
  if (parts[0]?.includes('.')) return fromUrl(`https://${base}`, ref);
  const [org, name] = parts;
  if (org === undefined || name === undefined || parts.length > 2)
    throw new BadHarborInput('must be org/name, host/org/name or an address of a git repository');
  return { url: `https://github.com/${org}/${name.replace(/\.git$/, '')}.git`, ref, subdir: null };
}

function fromUrl(url: string, ref: string | null): RepoSource {
  if (!URL.canParse(url)) throw new BadHarborInput('is no address of a git repository');
  const problem = gitUrlProblem(url);
  if (problem !== null) throw new BadHarborInput(problem);
  const { protocol, host, username, pathname } = new URL(url);
  const parts = decodeURI(pathname)
    .split('/')
    .filter((part) => part !== '');
  const tree = parts.indexOf('tree');
  const repo = tree < 0 ? parts : parts.slice(0, tree);
  const treeRef = tree < 0 ? null : (parts[tree + 1] ?? null);
  const subdir = tree < 0 ? '' : parts.slice(tree + 2).join('/');
  if (repo.length < 2) throw new BadHarborInput('must name a repository as https://host/org/name');
  if (ref !== null && treeRef !== null) throw new BadHarborInput(`names two refs, @${ref} and /tree/${treeRef}: keep one`);
  const user = username === '' ? '' : `${username}@`;
  return { url: `${protocol}//${user}${host}/${repo.join('/')}`, ref: ref ?? treeRef, subdir: subdir === '' ? null : subdir };
}

/** Splits `@ref` off the end; an `@` that belongs to the address stays. */
function splitRef(source: string): [base: string, ref: string | null] {
  const at = source.lastIndexOf('@');
  const ref = at <= 0 ? '' : source.slice(at + 1);
  return ref === '' || /[/:]/.test(ref) ? [source, null] : [source.slice(0, at), isCommit(ref) ? ref.toLowerCase() : ref];
}
