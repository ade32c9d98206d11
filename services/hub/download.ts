import { createHash } from 'node:crypto';
import { downloadFile, modelInfo, pathsInfo } from '@huggingface/hub';
import type { HubCache } from './cache.ts';
import type { HubAccess } from './hub-access.ts';
import type { RepoName } from './repo-name.ts';
import { TOKENIZER_FILES } from './tokenizer-files.ts';

/** A file came whole, and is not the one that the hub lists. */
export class DamagedDownload extends Error {
  override readonly name = 'DamagedDownload';
}

/** A file as the hub lists it. `lfs.oid` is a sha256; `oid` is Git's own name of the content. */
type Listed = {
  readonly path: string;
  readonly size: number;
  readonly oid?: string | undefined;
  readonly lfs?: { readonly oid: string } | undefined;
};

/**
 * Brings the tokenizer files of a repository's state into the cache. Each file is checked against what the hub lists before it gets its name
 * there. Returns their folder. @throws what the hub's client throws, and DamagedDownload
 */
export async function download({ repo, revision }: RepoName, { endpoint, token }: HubAccess, cache: HubCache) {
  const hub = { ...(endpoint === null ? {} : { hubUrl: endpoint }), ...(token === null ? {} : { accessToken: token }) };
  const { sha: commit } = await modelInfo({ name: repo, revision, additionalFields: ['sha'], ...hub });
  const listed: readonly Listed[] = await pathsInfo({ repo, revision: commit, paths: [...TOKENIZER_FILES], ...hub });
  // Without tokenizer.json a folder is not taken for whole, so it comes last: of a download that was killed no half is used.
  for (const file of listed.toSorted((a, b) => Number(isLast(a)) - Number(isLast(b)))) {
    // Over plain HTTP: its chunked protocol pays for weights, not for these.
    const blob = await downloadFile({ repo, revision: commit, path: file.path, xet: false, ...hub });
    if (blob === null) continue;
    const bytes = Buffer.from(await blob.arrayBuffer());
    refuseDamaged(file, bytes);
    await cache.put(commit, file.path, file.lfs?.oid ?? file.oid ?? sha256(bytes), bytes);
  }
  await cache.pointTo(revision, commit);
  return { folder: cache.folderOf(commit), commit };
}

const isLast = ({ path }: Listed) => path === 'tokenizer.json';

function refuseDamaged({ path, size, oid, lfs }: Listed, bytes: Uint8Array): void {
  if (bytes.length !== size) throw new DamagedDownload(`${path}: ${bytes.length} of ${size} bytes came`);
  const [wanted, found] = lfs ? [lfs.oid, sha256(bytes)] : [oid, gitName(bytes)];
  if (wanted !== undefined && wanted !== found)
    throw new DamagedDownload(`${path}: its content has digest ${found}; the hub lists ${wanted}`);
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

const gitName = (bytes: Uint8Array) => createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
