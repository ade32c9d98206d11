import { execa } from 'execa';
import { BadHarborInput, TaskUnreachable } from '../errors.ts';
import { ALLOWED_PROTOCOLS, isCommit } from './git-url.ts';

/** One git command is killed after this; a transfer that stands still ends by `STALL_SECONDS` already. */
const LIMIT_MS = 20 * 60_000;
const STALL_SECONDS = 60;
const MAX_LISTING_BYTES = 64 * 1024 * 1024;

/** What git says when trying again does not help. */
const FINAL = new RegExp(
  [
    'not our ref',
    "couldn't find remote ref",
    'repository .*not found',
    'does not appear to be a git repository',
    'authentication failed',
    'could not read (username|password)',
    'permission denied',
    'host key verification failed',
    'dubious ownership',
    'unadvertised object',
    'protocol .* not allowed',
    'requested URL returned error: 40[134]',
    'unable to read tree',
  ].join('|'),
  'i',
);

export type GitOptions = { readonly signal?: AbortSignal | undefined };

/**
 * The commit that a branch, a tag or HEAD (null) is at now; a whole commit id is one already and asks nobody.
 * @throws BadHarborInput for a ref that is not there, TaskUnreachable
 */
export async function commitOf(url: string, ref: string | null, options: GitOptions = {}): Promise<string> {
  if (ref !== null && isCommit(ref)) return ref.toLowerCase();
  const wanted = ref ?? 'HEAD';
  const listing = await git(['ls-remote', '--', url, wanted, `${wanted}^{}`], url, options);
  const commits = new Map(
    listing.split('\n').flatMap((line) => (line.includes('\t') ? [line.split('\t').reverse() as [string, string]] : [])),
  );
  for (const name of [wanted, `refs/heads/${wanted}`, `refs/tags/${wanted}`, `refs/${wanted}`]) {
    const commit = commits.get(`${name}^{}`) ?? commits.get(name); // an annotated tag is an object of its own: its commit counts
    if (commit !== undefined) return commit;
  }
  throw new BadHarborInput(`${url} has no branch or tag ${wanted}; a commit must be given whole (40 digits)`);
}

/** Fetches one commit, without its history and, where the server can, without its files. `dir` becomes a repository. */
export async function fetchCommit(url: string, commit: string, dir: string, options: GitOptions = {}): Promise<void> {
  await git(['init', '--quiet', dir], url, options);
  await git(['-C', dir, 'remote', 'add', 'origin', url], url, options);
  // Hugging Face's server takes the filter, and then does not hand out the files.
  const filter = new URL(url, 'ssh://h').hostname.endsWith('huggingface.co') ? [] : ['--filter=blob:none'];
  await git(['-C', dir, 'fetch', '--quiet', '--no-tags', '--depth', '1', ...filter, 'origin', commit], url, options);
}

/** Paths of all files of a fetched commit below a folder (`''`: all), whole from the repository's top. */
export async function listFiles(url: string, commit: string, dir: string, below: string, options: GitOptions = {}): Promise<string[]> {
  const listing = await git(
    ['-C', dir, 'ls-tree', '-r', '-z', '--name-only', commit, ...(below === '' ? [] : ['--', `${below}/`])],
    url,
    options,
  );
  return listing.split('\0').filter((path) => path !== '');
}

/** The text of one file of a fetched commit. @throws BadHarborInput when it is not there */
export async function readFileAt(url: string, commit: string, dir: string, path: string, options: GitOptions = {}): Promise<string> {
  const [found] = await git(['-C', dir, 'ls-tree', '-z', commit, '--', path], url, options).then((text) => text.split('\0'));
  if (!found?.includes(' blob ')) throw new BadHarborInput(`${url} has no file ${path} at commit ${commit}`);
  return git(['-C', dir, 'cat-file', 'blob', `${commit}:${path}`], url, options);
}

/** Puts the folders of a fetched commit into its work tree; files elsewhere are not even transferred. */
export async function checkOut(
  url: string,
  commit: string,
  dir: string,
  paths: readonly string[],
  options: GitOptions = {},
): Promise<void> {
  const patterns = paths.map((path) => `/${path.replace(/[\\*?[\]!#]/g, '\\$&')}/`).join('\n');
  await git(['-C', dir, 'sparse-checkout', 'set', '--no-cone', '--stdin'], url, { ...options, input: `${patterns}\n` });
  await git(['-C', dir, 'checkout', '--quiet', '--detach', commit], url, options);
}

async function git(args: readonly string[], url: string, { signal, input }: GitOptions & { readonly input?: string }): Promise<string> {
  const child = execa('git', [...SETTINGS, ...args], {
    env: environment(),
    extendEnv: false,
    detached: true, // a session of its own, so that nothing can ask at the worker's terminal, and its helpers are killed with it
    reject: false,
    stripFinalNewline: false,
    maxBuffer: MAX_LISTING_BYTES,
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
  });
  const kill = () => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  const limit = setTimeout(kill, LIMIT_MS);
  signal?.addEventListener('abort', kill);
  if (signal?.aborted) kill();
  const { exitCode, stdout, stderr, code } = await child.finally(() => {
    clearTimeout(limit);
    signal?.removeEventListener('abort', kill);
  });
  if (exitCode === 0) return stdout;
  signal?.throwIfAborted();
  if (code === 'ENOENT') throw new BadHarborInput('there is no git on this machine: install it, tasks are fetched with it');
  const said =
    withoutSecrets(String(stderr ?? '').trim()) ||
    (exitCode === undefined ? `git was ended, or took more than ${LIMIT_MS / 60_000} minutes` : `exit code ${exitCode}`);
  const told = `git could not read ${url}: ${said
    .split('\n')
    .filter((line) => !line.startsWith('warning:'))
    .slice(-3)
    .join(' ')
    .slice(0, 600)}`;
  throw FINAL.test(said)
    ? new BadHarborInput(`${told}. Check the address and the ref; git finds credentials by itself (docs/tasks.md)`)
    : new TaskUnreachable(told);
}

/** The same bytes on every machine, whatever its own git config says; no hooks. */
const SETTINGS = [
  'core.autocrlf=false',
  'core.symlinks=true',
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'gc.auto=0',
  'advice.detachedHead=false',
].flatMap((setting) => ['-c', setting]);

/** The worker's own environment, where git finds its credentials; nothing of it may make git wait for a person. */
function environment(): NodeJS.ProcessEnv {
  const { GIT_DIR: _dir, GIT_WORK_TREE: _tree, GIT_INDEX_FILE: _index, GIT_ASKPASS: _git, SSH_ASKPASS: _ssh, ...own } = process.env;
  return {
    GIT_HTTP_LOW_SPEED_LIMIT: '1000',
    GIT_HTTP_LOW_SPEED_TIME: String(STALL_SECONDS),
    ...own,
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: ALLOWED_PROTOCOLS,
    LC_ALL: 'C',
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}

/** Addresses that git was led to by its own config may hold what a run must not know. */
const withoutSecrets = (text: string) => text.replace(/\/\/[^/@\s']*@/g, '//***@');
