import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { StateError } from './failures.ts';

/** Where a record's payload lies in the journal file. */
export type PayloadRef = { readonly offset: number; readonly length: number };

/** A JSON header with a binary payload. */
export type JournalRecord = { readonly header: unknown; readonly payload: PayloadRef };

const FRAME_BYTES = 12;

/**
 * An append-only file of records. Frame: u32 header length, u32 payload length, u32 CRC-32 of both, header (JSON), payload; little-endian.
 * A process may be killed in the middle of an append, and a power cut may leave zeros where the last records were to be: such a tail is
 * recognised by its lengths or checksum and cut off at the next opening, so a record is there whole or not at all. Damage before the tail is another thing: the file is left as it is and refused.
 * The file is open only while it is read or written: a service has thousands of journals, and most of them rest.
 */
export class Journal {
  readonly path: string;
  #size: number;
  #isClosed = false;

  private constructor(path: string, size: number) {
    this.path = path;
    this.#size = size;
  }

  /** Opens or creates the file and hands every whole record to `visit`, oldest first. */
  static open(path: string, visit: (record: JournalRecord) => void): Journal {
    if (!existsSync(path)) {
      closeSync(openSync(path, 'wx', 0o600));
      syncFolder(dirname(path));
      return new Journal(path, 0);
    }
    const bytes = readFileSync(path);
    const end = scan(path, bytes, visit);
    if (end < bytes.length) {
      if (wholeRecordAfter(bytes, end)) {
        throw new StateError(
          `${path}: damaged at byte ${end}, with whole records after it, so this is no append that was cut short. Nothing was changed: ` +
            'restore the file from a copy, or choose another state folder',
        );
      }
      truncateSync(path, end);
    }
    return new Journal(path, end);
  }

  get sizeBytes(): number {
    return this.#size;
  }

  /** Appends a record. `durable` also waits for the disk, for what a caller was promised. */
  append(header: unknown, payload: Uint8Array = new Uint8Array(), durable = false): PayloadRef {
    const frame = encodeFrame(header, payload);
    this.#whileOpen((fd) => {
      writeAll(fd, frame, this.#size);
      if (durable) fdatasyncSync(fd);
    });
    this.#size += frame.length;
    return { offset: this.#size - payload.length, length: payload.length };
  }

  read(ref: PayloadRef): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(ref.length);
    const got = this.#whileOpen((fd) => readSync(fd, bytes, 0, ref.length, ref.offset));
    if (got !== ref.length)
      throw new StateError(`${this.path}: the file is shorter than it was; the state folder was changed from outside`);
    return bytes;
  }

  /** Replaces the file by one that holds only `records`, all or nothing. Old refs are void; `visit` gets the new ones. */
  rewrite(records: readonly { readonly header: unknown; readonly payload: Uint8Array }[], visit: (record: JournalRecord) => void): void {
    const bytes = Buffer.concat(records.map((record) => encodeFrame(record.header, record.payload)));
    this.#refuseWhenClosed();
    replaceFile(this.path, bytes);
    this.#size = scan(this.path, bytes, visit);
  }

  /** From now on the file belongs to somebody else: it is neither read nor written any more. */
  close(): void {
    this.#isClosed = true;
  }

  #whileOpen<T>(use: (fd: number) => T): T {
    this.#refuseWhenClosed();
    const fd = openSync(this.path, 'r+');
    try {
      return use(fd);
    } finally {
      closeSync(fd);
    }
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) throw new Error(`${this.path}: the journal is closed`);
  }
}

/** Writes a file so that after a crash either the old or the whole new content is there. */
export function replaceFile(path: string, bytes: Uint8Array): void {
  const temporary = `${path}.tmp`;
  const fd = openSync(temporary, 'w', 0o600);
  try {
    writeAll(fd, bytes, 0);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) done += writeSync(fd, bytes, done, bytes.length - done, position + done);
}

/** Makes names that were added to a folder durable. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function encodeFrame(header: unknown, payload: Uint8Array): Buffer {
  const head = Buffer.from(JSON.stringify(header), 'utf8');
  const frame = Buffer.allocUnsafe(FRAME_BYTES + head.length + payload.length);
  frame.writeUInt32LE(head.length, 0);
  frame.writeUInt32LE(payload.length, 4);
  frame.set(head, FRAME_BYTES);
  frame.set(payload, FRAME_BYTES + head.length);
  frame.writeUInt32LE(crc32(frame.subarray(FRAME_BYTES)), 8);
  return frame;
}

/** Returns where the last whole record ends. */
function scan(path: string, bytes: Buffer, visit: (record: JournalRecord) => void): number {
  let at = 0;
  for (let frame = frameAt(bytes, at); frame !== null; frame = frameAt(bytes, at)) {
    const { payloadAt, end } = frame;
    const header = parseHeader(path, bytes.toString('utf8', at + FRAME_BYTES, payloadAt));
    visit({ header, payload: { offset: payloadAt, length: end - payloadAt } });
    at = end;
  }
  return at;
}

/** The whole record that begins at `at`; null when there is none, or one that is cut short or damaged. */
function frameAt(bytes: Buffer, at: number): { readonly payloadAt: number; readonly end: number } | null {
  if (at + FRAME_BYTES > bytes.length) return null;
  const headerBytes = bytes.readUInt32LE(at);
  // No header is empty, but where a power cut left zeros their checksum is that of nothing.
  if (headerBytes === 0) return null;
  const payloadAt = at + FRAME_BYTES + headerBytes;
  const end = payloadAt + bytes.readUInt32LE(at + 4);
  if (end > bytes.length || crc32(bytes.subarray(at + FRAME_BYTES, end)) !== bytes.readUInt32LE(at + 8)) return null;
  return { payloadAt, end };
}

/** Looks for a record at every byte after `damagedAt`; each header begins with a brace, so few places need their checksum computed. */
function wholeRecordAfter(bytes: Buffer, damagedAt: number): boolean {
  for (let brace = bytes.indexOf('{', damagedAt + FRAME_BYTES + 1); brace >= 0; brace = bytes.indexOf('{', brace + 1))
    if (frameAt(bytes, brace - FRAME_BYTES) !== null) return true;
  return false;
}

function parseHeader(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new StateError(`${path}: a record with a good checksum is not JSON (${String(cause)}); the file was not written by this service`);
  }
}
