import { ActivityFailure, CancellationScope } from '@temporalio/workflow';
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

/** Work of a child: where it fails, it cannot say what its trials took, finished ones included. Their books do, and that is counted as open. */
export async function batchCounted<T>(run: Run, batch: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { ref } = run.pinned;
    await bookingAfter(run, async () =>
      run.bookOpen(await CancellationScope.nonCancellable(() => keepingTrials().readBatch({ run: ref, batch }))),
    );
    throw error;
  }
}

/** Books after something failed: that, and not that it could not be booked, is what a person must hear of. */
export async function bookingAfter(run: Run, booking: () => Promise<void>): Promise<void> {
  try {
    await booking();
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    run.note(`not all that was paid for could be booked: ${error.cause?.message}`);
  }
}

/** What training took since the run's books were told last: an update that failed, or was not finished. Nothing may be asked of it afterwards. */
export async function bookTraining(run: Run): Promise<void> {
  const { training } = run.facts;
  if (!training) return;
  const { ref } = run.pinned;
  await run.bookBeside(await CancellationScope.nonCancellable(() => keepingTrials().readTraining({ run: ref, training })));
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
