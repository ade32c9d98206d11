import { z } from 'zod';
import { StoreDamaged } from './version-index.ts';
import type { VersionShelf } from './version-shelf.ts';
import { type SaveOrder, type Version, VersionStore } from './version-store.ts';

const FILE = 'doc.json';

/** Stored descriptions of agents, as `<name>/vN/doc.json`; `form` is what such a document must look like. */
export class HarnessStore<Document> {
  readonly versions: VersionStore;
  private readonly form: z.ZodType<Document>;

  /** On a shelf, or as folders below a path. */
  constructor(shelf: VersionShelf | string, form: z.ZodType<Document>) {
    this.versions = new VersionStore(shelf, 'agent');
    this.form = form;
  }

  /** Keeps a document as it is given. @throws ZodError for one that is not of the form */
  async save(document: object, order: Omit<SaveOrder, 'files'>): Promise<Version> {
    this.form.parse(document);
    return this.versions.save({ ...order, files: () => ({ [FILE]: `${JSON.stringify(document, null, 2)}\n` }) });
  }

  /** The document that `ref` means (see `VersionStore.resolve`). @throws StoreError, or StoreDamaged for one that does not read */
  async load(name: string, ref: string | null): Promise<{ version: number; document: Document }> {
    const { version, path } = await this.versions.resolve(name, ref);
    try {
      return { version, document: this.form.parse(JSON.parse(await this.versions.read(name, version, FILE))) };
    } catch (error) {
      const problem = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
      throw new StoreDamaged(`${path}/${FILE} is not a description of an agent: ${problem}`);
    }
  }
}
