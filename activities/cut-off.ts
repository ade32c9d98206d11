import pLimit from 'p-limit';
import type { BlobRef } from '../core/ids.ts';
import { spendOf } from '../core/measures/spend.ts';
import { addUsage, type Paid } from '../core/measures/usage.ts';
import type { BookName } from '../core/recordings/book-name.ts';
import { usageOf } from '../core/recordings/books.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { bookPrefix, openBook } from './paid-calls.ts';
import type { RunRecords } from './run-records.ts';

/** Books that are read at once. */
const READERS = 8;

export type CutOffDeps = { readonly records: RunRecords; readonly objects: ObjectStore };
export type CutOffActivities = ReturnType<typeof createCutOffActivities>;

export function createCutOffActivities({ records, objects }: CutOffDeps) {
  return {
    /**
     * What work took that was broken off and could not tell by itself. Its books are taken over first: an attempt that still hangs somewhere
     * can enter nothing more, and so can send nothing more. Nobody made anything of these calls, so each stands for itself; one without an
     * answer is lost. Work that never began has no book and took nothing.
     */
    async readBooks({ run, books }: { run: BlobRef; books: readonly BookName[] }): Promise<Paid> {
      const { runId, config } = await records.load(run);
      const usages = await pLimit(READERS).map(books, async (book) => {
        if (!(await isBegun(objects, runId, book))) return [];
        return [usageOf((await openBook(objects, runId, book)).calls, book.of)];
      });
      const usage = addUsage(...usages.flat());
      return { ...usage, usd: spendOf(config.pricing, usage.meters).usd };
    },
  };
}

async function isBegun(objects: ObjectStore, runId: string, book: BookName): Promise<boolean> {
  for await (const _ of objects.list(bookPrefix(runId, book))) return true;
  return false;
}
