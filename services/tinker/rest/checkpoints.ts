import { z } from 'zod';
import { BadRequest, ServiceFailed } from '../errors.ts';
import type { Caller } from '../http/caller.ts';
import { type PathParts, runOfPath, type SamplerPath, type StatePath, savedParts } from '../paths.ts';
import { cursorSchema, everyPage, type Page, type PageOptions } from './paging.ts';
import { getJson, ifSupported, ofSome, type Query, sendDelete, sendOnly } from './request.ts';

/** Null and `isPublic: false` where the service does not say, but for `expiresAt`. */
export type Checkpoint = {
  /** `weights/<name>`, `sampler_weights/<name>` or `external_weights/<name>`; some servers leave the kind out. */
  readonly id: string;
  /** `training`, `sampler` or `external`. */
  readonly type: string;
  readonly path: string;
  /** ISO 8601. */
  readonly savedAt: string | null;
  readonly sizeBytes: number | null;
  readonly isPublic: boolean;
  readonly userMetadata: Readonly<Record<string, string>> | null;
  /** ISO 8601; null: it never expires; undefined where the service does not say. */
  readonly expiresAt: string | null | undefined;
};

/** Where the files of saved external weights can be fetched, and until when (ISO 8601). */
export type ExternalWeightsUrls = { readonly urls: Readonly<Record<string, string>>; readonly expiresAt: string | null };

export const checkpointSchema = z.object({
  checkpoint_id: z.string(),
  checkpoint_type: z.string(),
  tinker_path: z.string(),
  time: z.string().nullish(),
  size_bytes: z.number().nullish(),
  public: z.boolean().nullish(),
  user_metadata: z.record(z.string(), z.string()).nullish(),
  expires_at: z.string().nullish(),
});
const listSchema = z.object({ checkpoints: z.array(checkpointSchema), cursor: cursorSchema });
const urlsSchema = z.object({ urls: z.record(z.string(), z.string()), expires: z.string().nullish() });

const anything = z.unknown();

const PAGE_LIMIT = 100;

/** Saved weights: list, publish, let expire, delete. Where it answers false, the service does not have the call. */
export class Checkpoints {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** What a model has saved; further pages are fetched where the service says that there is more. */
  async list(modelId: string): Promise<Checkpoint[]> {
    const all: Checkpoint[] = [];
    for (let query: Query = {}; ; query = { limit: PAGE_LIMIT, offset: all.length }) {
      const { checkpoints, cursor } = await getJson(this.#caller, `training_runs/${modelId}/checkpoints`, query, listSchema);
      all.push(...checkpoints.map(checkpointOf));
      if (checkpoints.length === 0 || all.length >= (cursor?.total_count ?? 0)) return all;
    }
  }

  /** One page of what all of the account's models have saved. */
  async page({ limit = PAGE_LIMIT, offset = 0 }: PageOptions = {}): Promise<Page<Checkpoint>> {
    const { checkpoints, cursor } = await getJson(this.#caller, 'checkpoints', { limit, offset }, listSchema);
    return { items: checkpoints.map(checkpointOf), totalCount: cursor?.total_count ?? null };
  }

  /** All that all of the account's models have saved, page by page. */
  all(): AsyncGenerator<Checkpoint> {
    return everyPage(PAGE_LIMIT, (options) => this.page(options));
  }

  /**
   * The listed checkpoint that a save answered this path for; null when the service does not list it, as after a save that did not persist.
   * Servers may list another form of the path than they answered: run, kind and name count, or the whole path in a form of their own.
   * @throws BadRequest when the path names no run, or the service does not know it
   */
  async find(path: SamplerPath | StatePath): Promise<Checkpoint | null> {
    return (await this.list(runOfPath(path) ?? partsOf(path).run)).find((listed) => isListingOf(listed, path)) ?? null;
  }

  /**
   * The same for many paths, with one list a run. Null: not listed, or its run is lost. A path is not in the answer where the service has
   * no such lists.
   */
  async lookUp<Path extends string>(paths: readonly Path[]): Promise<Map<Path, Checkpoint | null>> {
    const found = new Map<Path, Checkpoint | null>();
    for (const [run, ofRun] of Map.groupBy(paths, runOfPath)) {
      if (run === null) continue;
      const listed = await ifSupported(this.list(run));
      if (listed === null && !(await this.#isLost(run))) continue;
      for (const path of ofRun) found.set(path, listed?.find((one) => isListingOf(one, path)) ?? null);
    }
    return found;
  }

  /**
   * After a save whose checkpoint must last: false where the service has no listing to look at.
   * @throws ServiceFailed when the service does not list the path that it answered, or has lost its run
   */
  async assertListed(path: SamplerPath | StatePath): Promise<boolean> {
    const run = runOfPath(path);
    if (run === null) return false;
    const looked = await ifSupported(this.find(path).then((listed) => ({ listed })));
    if (looked === null && !(await this.#isLost(run))) return false;
    if (looked?.listed) return true;
    throw new ServiceFailed(`the service answered a save with ${path}, but does not list it: it was not kept`, { call: 'checkpoints' });
  }

  /** A 404 of a run's list may also come from a server without such lists: one that has runs, but not this one, has lost it. */
  async #isLost(run: string): Promise<boolean> {
    const looksLike = (path: string, query: Query) => ifSupported(getJson(this.#caller, path, query, anything).then(() => true));
    if (await looksLike(`training_runs/${run}`, {})) return false;
    return (await looksLike('training_runs', { limit: 1, offset: 0 })) ?? false;
  }

  /** @throws BadRequest when there is no such checkpoint */
  async delete(path: SamplerPath | StatePath | string): Promise<void> {
    await sendDelete(this.#caller, checkpointUrl(path));
  }

  /** Lets everybody use the checkpoint. */
  publish(path: SamplerPath | StatePath): Promise<boolean> {
    return this.#isDone('POST', `${checkpointUrl(path)}/publish`);
  }

  unpublish(path: SamplerPath | StatePath): Promise<boolean> {
    return this.#isDone('DELETE', `${checkpointUrl(path)}/publish`);
  }

  /** Lets the checkpoint expire that many seconds from now (3600 .. 10 years), or never with null. */
  setTtl(path: SamplerPath | StatePath, ttlSeconds: number | null): Promise<boolean> {
    return this.#isDone('PUT', `${checkpointUrl(path)}/ttl`, { ttl_seconds: ttlSeconds });
  }

  /** Of what `saveExternal` answered. @throws BadRequest when the service has no such weights, or no such call */
  async externalWeightsUrls(path: string): Promise<ExternalWeightsUrls> {
    const { urls, expires } = await ofSome(
      getJson(this.#caller, `${checkpointUrl(path)}/external_weights_urls`, {}, urlsSchema),
      `weights for download at ${path}, or does not offer downloads`,
    );
    return { urls, expiresAt: expires ?? null };
  }

  async #isDone(method: 'POST' | 'PUT' | 'DELETE', url: string, body?: object): Promise<boolean> {
    return (await ifSupported(sendOnly(this.#caller, method, url, body).then(() => true))) ?? false;
  }
}

function isListingOf(listed: Checkpoint, path: string): boolean {
  const [parts, wanted] = [savedParts(listed.path), savedParts(path)];
  return listed.path === path || (wanted !== null && parts !== null && parts.kind === wanted.kind && parts.name === wanted.name);
}

export function checkpointOf(listed: z.infer<typeof checkpointSchema>): Checkpoint {
  return {
    id: listed.checkpoint_id,
    type: listed.checkpoint_type,
    path: listed.tinker_path,
    savedAt: listed.time ?? null,
    sizeBytes: listed.size_bytes ?? null,
    isPublic: listed.public ?? false,
    userMetadata: listed.user_metadata ?? null,
    expiresAt: listed.expires_at,
  };
}

/** The id keeps its slash: `training_runs/<run>/checkpoints/weights/<name>`. */
function checkpointUrl(path: string): string {
  const { run, kind, name } = partsOf(path);
  return `training_runs/${run}/checkpoints/${kind}/${name}`;
}

function partsOf(path: string): PathParts {
  const parts = savedParts(path);
  if (parts !== null) return parts;
  throw new BadRequest(`"${path}" is not tinker://<run>/<weights|sampler_weights|external_weights>/<name>`, { call: 'checkpoints' });
}
