import { access, constants, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { removeTree } from './remove-tree.ts';
import { makeScratchDir, sweepScratch } from './scratch.ts';

/** The RAM disk, where trials are fastest, then the temp directory. */
export const trialPlaces = (): readonly [ram: string, temp: string] => ['/dev/shm', tmpdir()];
/** Room that a place must have before a trial is begun in it. */
const MIN_FREE_BYTES = 256 * 2 ** 20;

/** No place has room for a trial's folder. It may have again when other trials have ended. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom';
}

export type TrialFoldersOptions = {
  /** The best first. Default: `trialPlaces`. */
  readonly roots?: readonly string[];
  readonly minFreeBytes?: number;
};

/** Where one worker keeps the folders of trials that run: a private folder in each place that it needs. */
export class TrialFolders implements AsyncDisposable {
  private readonly roots: readonly string[];
  private readonly minFreeBytes: number;
  private readonly made = new Map<string, Promise<string>>();

  /** Clears at once what dead workers left. */
  constructor({ roots = trialPlaces(), minFreeBytes = MIN_FREE_BYTES }: TrialFoldersOptions = {}) {
    this.roots = roots;
    this.minFreeBytes = minFreeBytes;
    for (const root of roots) void sweepScratch(root, 'trials');
  }

  /** A folder for the next trial's own, in the best place that has room now. @throws NoRoom */
  readonly place = async (): Promise<string> => {
    const lacking: string[] = [];
    for (const root of this.roots) {
      const free = await freeBytes(root);
      if (free !== null && free >= this.minFreeBytes) return this.dirIn(root);
      lacking.push(free === null ? `${root} cannot be written` : `${megabytes(free)} MB are free in ${root}`);
    }
    const advice = 'Remove what fills them, or start the worker with TMPDIR set to a folder with room';
    throw new NoRoom(`no room for a trial, which needs ${megabytes(this.minFreeBytes)} MB: ${lacking.join(', ')}. ${advice}`);
  };

  private dirIn(root: string): Promise<string> {
    const made = this.made.get(root) ?? makeScratchDir(root, 'trials');
    this.made.set(root, made);
    made.catch(() => this.made.delete(root));
    return made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.made.values()].map(async (made) => removeTree(await made).catch(() => {})));
  }
}

const megabytes = (bytes: number) => Math.floor(bytes / 2 ** 20);

/** Null for a place that is not there or not ours to write in. */
export async function freeBytes(root: string): Promise<number | null> {
  try {
    await access(root, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(root);
    return bavail * bsize;
  } catch {
    return null;
  }
}
