import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { z } from 'zod';
import { redactor } from './redaction.ts';
import { type FoundFile, readUpTo, walkFiles } from './walk.ts';

const FileInBundle = z.strictObject({
  /** Relative to the trial's folder, with forward slashes. */
  path: z.string(),
  /** What the file had on disk, in bytes. */
  size: z.int().nonnegative(),
  encoding: z.enum(['utf8', 'base64']),
  content: z.string(),
  /** What is missing from `content`: the tokens of the model calls, which the run keeps elsewhere; or the middle of a long file. */
  leftOut: z.enum(['tokens', 'middle']).nullable(),
});
const Bundle = z.strictObject({
  version: z.literal(1),
  files: z.array(FileInBundle),
  /** Entries of the folder that were not kept: links, pipes, unreadable or too many files. */
  leftOut: z.int().nonnegative(),
});

/** What a trial left in its folder, in one value. */
export type TrialBundle = z.infer<typeof Bundle>;
export type BundledFile = z.infer<typeof FileInBundle>;

const MAX_FILE_BYTES = 256 * 1024;
const MAX_ALL_BYTES = 4 * 2 ** 20;
const MAX_ENTRIES = 1_000;
/** harbor's records are written anew without tokens; a larger one is cut like any other file. */
const MAX_RECORD_BYTES = 64 * 2 ** 20;
const MAX_UNPACKED_BYTES = 64 * 2 ** 20;

/** What the run's own record of each call has, exactly; harbor writes one number a line. */
const TOKEN_KEYS = new Set(['rollout_details', 'prompt_token_ids', 'completion_token_ids', 'token_ids', 'logprobs']);
const RECORDS = /^(result|(steps\/[^/]+\/)?agent\/trajectory[^/]*)\.json$/;

/**
 * Packs what a trial left in its folder: records of harbor without tokens and in compact form, of all other files at most the beginning and
 * the end, nothing that a link leads to, and no secret. Null where there is no folder.
 */
export async function packTrial(trialDir: string, secrets: readonly string[]): Promise<Uint8Array | null> {
  const redact = redactor(secrets);
  const files: BundledFile[] = [];
  let room = MAX_ALL_BYTES;
  let crowdedOut = 0;
  const onFile = async (found: FoundFile) => {
    if (room <= 0) return void crowdedOut++;
    const { bytes, leftOut } = (await recordIn(found, redact.bytes)) ?? (await partsOf(found, Math.min(room, MAX_FILE_BYTES), redact));
    room -= bytes.length;
    files.push({ path: found.path, size: found.size, ...encoded(bytes), leftOut });
  };
  const skipped = await walkFiles(trialDir, { maxEntries: MAX_ENTRIES, onFile }).catch(() => null);
  if (skipped === null) return null;
  const bundle: TrialBundle = { version: 1, files, leftOut: skipped + crowdedOut };
  return promisify(zstdCompress)(Buffer.from(JSON.stringify(bundle)));
}

/** @throws Error for bytes that are no bundle */
export async function unpackTrial(bytes: Uint8Array): Promise<TrialBundle> {
  const text = await promisify(zstdDecompress)(bytes, { maxOutputLength: MAX_UNPACKED_BYTES });
  return Bundle.parse(JSON.parse(`${text}`));
}

export const contentOf = ({ content, encoding }: BundledFile): Buffer => Buffer.from(content, encoding);

/** One of harbor's records, compact; null for another file, or one that cannot be read as what it should be. */
async function recordIn({ path, size, file }: FoundFile, redact: (bytes: Buffer) => Buffer) {
  if (!RECORDS.test(path) || size > MAX_RECORD_BYTES) return null;
  let hasTokens = false;
  const replacer = (key: string, value: unknown) => {
    if (!TOKEN_KEYS.has(key)) return value;
    hasTokens ||= value !== null;
    return undefined;
  };
  try {
    const compact = JSON.stringify(JSON.parse(`${await readUpTo(file, 0, size)}`), replacer);
    const bytes = redact(Buffer.from(compact));
    return bytes.length > MAX_FILE_BYTES ? null : { bytes, leftOut: hasTokens ? ('tokens' as const) : null };
  } catch {
    return null;
  }
}

/** A file, or its beginning and end if it is long. */
async function partsOf({ size, file }: FoundFile, maxBytes: number, redact: ReturnType<typeof redactor>) {
  if (size <= maxBytes) return { bytes: redact.bytes(await readUpTo(file, 0, size)), leftOut: null };
  const half = Math.floor(maxBytes / 2);
  // More than is kept is read: a secret that reading cuts in two is not seen as one, so where it may stand is never kept.
  const read = Math.min(size, half + redact.longest);
  const start = redact.bytes(await readUpTo(file, 0, read));
  const head = start.subarray(0, Math.min(half, Math.max(0, start.length - redact.longest)));
  const end = redact.bytes(await readUpTo(file, size - read, read));
  const tail = end.subarray(Math.max(redact.longest, end.length - half));
  const mark = Buffer.from(`\n[… ${size - 2 * half} bytes left out …]\n`);
  return { bytes: Buffer.concat([head, mark, tail]), leftOut: 'middle' as const };
}

function encoded(bytes: Buffer): Pick<BundledFile, 'encoding' | 'content'> {
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? { encoding: 'utf8', content: text } : { encoding: 'base64', content: bytes.toString('base64') };
}
