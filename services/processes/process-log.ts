import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import path from 'node:path';

const MAX_BYTES = 8 * 1024 * 1024;
const TAIL_BYTES = 4 * 1024;
/** A full or failing disk, a folder that somebody removed or made read-only. */
const LOST_OUTPUT = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'ENOENT', 'EACCES']);

/**
 * What one child process prints, in `<dir>/<name>.log`. The file is bounded: at 8 MiB it becomes `<name>.log.1`, which replaces the one
 * before. Restarts of the child go on in the same file.
 */
export class ProcessLog {
  readonly file: string;
  private fd: number;
  private bytes: number;
  private recent = '';
  private closed = false;

  constructor(dir: string, name: string) {
    mkdirSync(dir, { recursive: true });
    this.file = path.join(dir, `${name}.log`);
    this.bytes = existsSync(this.file) ? statSync(this.file).size : 0;
    this.fd = openSync(this.file, 'a');
  }

  /**
   * Output that comes after `close`, from a process that outlived its own end, is dropped, and so is what the disk does not take: a log
   * must not end what it is the log of.
   */
  write(chunk: Buffer | string): void {
    if (this.closed) return;
    this.recent = (this.recent + chunk.toString()).slice(-TAIL_BYTES);
    try {
      if (this.bytes > MAX_BYTES) this.rotate();
      this.bytes += writeSync(this.fd, typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
    } catch (error) {
      if (!LOST_OUTPUT.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }

  /** The last lines since we opened the file, for an error message. */
  tail(lines: number): string {
    return this.recent.trimEnd().split('\n').slice(-lines).join('\n');
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    closeSync(this.fd);
  }

  private rotate(): void {
    renameSync(this.file, `${this.file}.1`);
    const fresh = openSync(this.file, 'a');
    closeSync(this.fd);
    this.fd = fresh;
    this.bytes = 0;
  }
}
