import { CancellationScope } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import { addPaid, NOTHING_PAID, type Paid } from '../core/measures/usage.ts';
import type { BookName } from '../core/recordings/book-name.ts';
import { keepingTrials } from './proxies.ts';
import type { Run } from './run.ts';

/** Books that one activity reads: each may have some hundred entries. */
const BOOKS_AT_ONCE = 50;

/** What broken-off work took by its books, also when all around it is cancelled. */
export function readBooks(run: BlobRef, books: readonly BookName[]): Promise<Paid> {
  return CancellationScope.nonCancellable(async () => {
    let paid = NOTHING_PAID;
    for (let from = 0; from < books.length; from += BOOKS_AT_ONCE)
      paid = addPaid(paid, await keepingTrials().readBooks({ run, books: books.slice(from, from + BOOKS_AT_ONCE) }));
    return paid;
  });
}

/** Work of the run itself: where it is broken off, what its books say that it took is counted as open. */
export async function counted<T>(run: Run, books: readonly BookName[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await run.bookOpen(await readBooks(run.pinned.ref, books));
    throw error;
  }
}
