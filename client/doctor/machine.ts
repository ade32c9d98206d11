import { execa } from 'execa';
import { openObjectStore } from '../../services/blobs/open.ts';
import { availableBytes, freeBytes, trialPlaces } from '../../services/harbor/index.ts';
import type { AppSettings } from '../../services/settings/index.ts';
import { firstLine, look, missing, type Seen, warning, works } from './finding.ts';

const LIMIT_MS = 5_000;
const GIB = 2 ** 30;
/** Below this, trials wait for memory, or fail for want of room. */
const LOW_BYTES = GIB;

/** Programs of this machine that some agents and tasks need; process sandboxes show the host's. */
export const toolFindings = (): Promise<Seen>[] => [
  tool('tmux', ['-V'], 'the agents pi and terminus-2 need it in process sandboxes: install the package tmux'),
  tool('git', ['--version'], 'tasks from git repositories need it: install the package git'),
];

const tool = (name: string, args: string[], without: string) =>
  look(name, LIMIT_MS, async () => {
    const { exitCode, stdout } = await execa(name, args, { reject: false, stdin: 'ignore', timeout: LIMIT_MS });
    return exitCode === 0 ? works(name, stdout.trim()) : warning(name, 'not on this machine', without);
  });

export const spaceFinding = (): Promise<Seen> =>
  look('space for trials', LIMIT_MS, async () => {
    const [ram, disk] = trialPlaces();
    const [inRam, onDisk] = [(await freeBytes(ram)) ?? 0, (await freeBytes(disk)) ?? 0];
    const told = `${gib(inRam)} on ${ram} (RAM), ${gib(onDisk)} in ${disk}`;
    if (Math.max(inRam, onDisk) < LOW_BYTES) return warning('space for trials', told, 'make room, or set TMPDIR to a larger disk');
    return works('space for trials', told);
  });

export const memoryFinding = ({ workers }: AppSettings): Promise<Seen> =>
  look('memory', LIMIT_MS, async () => {
    const free = await availableBytes();
    const told = `${gib(free)} available for up to ${workers.rolloutSlots} trials at once`;
    return free < LOW_BYTES
      ? warning('memory', told, 'fewer workers.rolloutSlots, or more memory: trials wait for it')
      : works('memory', told);
  });

const gib = (bytes: number) => `${(bytes / GIB).toFixed(1)} GiB`;

export const storeFinding = ({ blobStore }: AppSettings): Promise<Seen> =>
  look('blob store', LIMIT_MS, async () => {
    const place = blobStore.kind === 'folder' ? blobStore.path : `s3://${blobStore.bucket}/${blobStore.prefix}`;
    try {
      await openObjectStore({ blobStore });
      return works('blob store', `${place} can be written`);
    } catch (error) {
      return missing('blob store', firstLine(error), 'set blobStore in temporal.config.json to a place that can be written');
    }
  });

export function gatewayFinding({ gateway: { host, port, publicUrl } }: AppSettings, named = process.env.STILLROOM_GATEWAY_URL): Seen {
  const here = `listens on ${host}, ${port === 0 ? 'any free port' : `port ${port}`}`;
  const shown = named || publicUrl;
  if (shown) return works('gateway', `${here}; agents are told ${shown}`);
  return works('gateway', `${here}; agents inside containers need gateway.publicUrl to reach it`);
}
