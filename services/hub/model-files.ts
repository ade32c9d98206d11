import { stat } from 'node:fs/promises';
import { HUB_URL, HubApiError } from '@huggingface/hub';
import type { TokenizerSource } from '../settings/index.ts';
import { HubCache } from './cache.ts';
import { DamagedDownload, download } from './download.ts';
import { ModelFilesUnavailable } from './errors.ts';
import type { HubAccess } from './hub-access.ts';
import { type RepoName, repoNamed } from './repo-name.ts';
import { lacking } from './tokenizer-files.ts';

/** Where a model's tokenizer files lie. `commit`: the repository's state that they are of; null for a folder that a person named. */
export type FoundFiles = { readonly folder: string; readonly from: 'settings' | 'cache' | 'hub'; readonly commit: string | null };

/**
 * The tokenizer files of models, on this machine. A folder that the settings name comes before everything, then what the hub's cache has,
 * then the hub.
 */
export class ModelFiles {
  private readonly access: HubAccess;
  private readonly named: Readonly<Record<string, TokenizerSource>>;

  constructor(access: HubAccess, named: Readonly<Record<string, TokenizerSource>> = {}) {
    this.access = access;
    this.named = named;
  }

  /** `commit` asks for exactly this state of the model's repository. @throws ModelFilesUnavailable */
  async find(model: string, { commit = null }: { readonly commit?: string | null } = {}): Promise<FoundFiles> {
    const named = this.named[model];
    if (named !== undefined && 'folder' in named) return whole(model, named.folder);
    const repo = repoNamed(named?.repo ?? model);
    if (repo === null) throw new ModelFilesUnavailable(model, notARepository(model));
    return this.ofRepo(model, commit === null ? repo : { ...repo, revision: commit });
  }

  private async ofRepo(model: string, repo: RepoName): Promise<FoundFiles> {
    const cache = new HubCache(this.access.cacheDir, repo.repo);
    const cached = await cache.snapshot(repo);
    const missing = cached === null ? null : await lacking(cached.folder);
    if (cached !== null && missing?.length === 0) return { ...cached, from: 'cache' };
    const looked = missing === null ? `nothing at ${cache.placeOf(repo.revision)}` : `${cached?.folder} lacks ${missing.join(', ')}`;
    if (this.access.offline)
      throw new ModelFilesUnavailable(model, `${intro(model)}${looked}, and HF_HUB_OFFLINE is set. ${remedy(model)}`);
    const got = await download(repo, this.access, cache).catch((cause) => {
      throw asUnavailable(model, repo, looked, cause, this.access);
    });
    const lacks = await lacking(got.folder);
    if (lacks.length > 0)
      throw new ModelFilesUnavailable(model, `${intro(model)}the hub's ${repo.repo} has no ${lacks.join(' and no ')}. ${remedy(model)}`);
    return { ...got, from: 'hub' };
  }
}

async function whole(model: string, folder: string): Promise<FoundFiles> {
  const named = `${intro(model)}${folder}, which "tokenizers" in temporal.config.json names,`;
  const found = await stat(folder).catch(() => null);
  if (found === null) throw new ModelFilesUnavailable(model, `${named} is not on this worker. Correct the name, ${RESTART}`);
  if (!found.isDirectory()) throw new ModelFilesUnavailable(model, `${named} is no folder. Name the folder that it is in, ${RESTART}`);
  const missing = await lacking(folder);
  if (missing.length === 0) return { folder, from: 'settings', commit: null };
  throw new ModelFilesUnavailable(model, `${named} lacks ${missing.join(', ')}. Put the files there`);
}

/** Workers read the settings once. */
const RESTART = 'and restart the worker';

const intro = (model: string) => `no tokenizer files of ${model}: `;

const remedy = (model: string) =>
  `Name a folder that has them on this worker: "tokenizers": {${JSON.stringify(model)}: "./folder"} in temporal.config.json, ${RESTART}`;

const notARepository = (model: string) =>
  `${intro(model)}that is no name of a repository (org/name). Name its tokenizer's repository, or a folder: ` +
  `"tokenizers": {${JSON.stringify(model)}: "org/name"} in temporal.config.json, ${RESTART}`;

/** The token is in none of these: the client's messages are those of the hub, and the rest says what it was sent for. */
function asUnavailable(model: string, { repo, revision }: RepoName, looked: string, cause: unknown, { token, endpoint }: HubAccess): Error {
  if (endpoint !== null && !URL.canParse(endpoint))
    return new ModelFilesUnavailable(
      model,
      `${intro(model)}${looked}, and HF_ENDPOINT is no URL. Set it to one with https://, or unset it`,
      { cause },
    );
  const hub = `the hub at ${new URL(endpoint ?? HUB_URL).host}`;
  const fail = (what: string, mayPass = false) =>
    new ModelFilesUnavailable(model, `${intro(model)}${looked}, and ${what}. ${remedy(model)}`, { mayPass, cause });
  if (cause instanceof DamagedDownload) return fail(`what came from ${hub} is damaged: ${cause.message}`, true);
  if (cause instanceof TypeError && cause.message.includes('access token')) return fail(`HF_TOKEN is no token: ${cause.message}`);
  if (isOfDisk(cause)) return fail(`the cache cannot be written (${cause.message})`);
  if (!(cause instanceof HubApiError)) return fail(`${hub} could not be reached (${reasonOf(cause)})`, true);
  const status = cause.statusCode;
  if (status === 401 || status === 403) {
    const asked = token === null ? 'HF_TOKEN is not set' : 'with this HF_TOKEN';
    return fail(`${hub} does not give ${repo} to us (${status}, ${asked}): ask for access on its page there, or check its name`);
  }
  if (status === 404) return fail(`${hub} has no ${repo} at ${revision}`);
  return fail(`${hub} answered ${status}`, status === 429 || status >= 500);
}

const isOfDisk = (cause: unknown): cause is NodeJS.ErrnoException => cause instanceof Error && 'syscall' in cause && 'path' in cause;

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { code } = (cause.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' ? `${cause.message}: ${code}` : cause.message;
}
