import { closeSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';

/** The results cannot be written where they are wanted. */
export class OutUnwritable extends Error {
  constructor(path: string, why: string) {
    super(`--out ${path}: ${why}`);
    this.name = 'OutUnwritable';
  }
}

/** The file of results: whole at any moment, whatever happens to the process. */
export class ResultsFile {
  readonly path: string;
  readonly #partial: string;

  /** @throws OutUnwritable when no file can be written there */
  constructor(path: string) {
    this.path = path;
    this.#partial = `${path}.${process.pid}.partial`;
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new OutUnwritable(path, 'is a folder; name a file in it');
    this.#orExplain(() => closeSync(openSync(this.#partial, 'w')));
    rmSync(this.#partial);
  }

  /** @throws OutUnwritable, e.g. when the disk is full; what was there before stays */
  write(text: string): void {
    this.#orExplain(() => {
      writeFileSync(this.#partial, text);
      renameSync(this.#partial, this.path);
    });
  }

  #orExplain(write: () => void): void {
    try {
      write();
    } catch (error) {
      rmSync(this.#partial, { force: true });
      throw new OutUnwritable(this.path, `cannot be written: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
