import pLimit from 'p-limit';
import type { BlobRef, TrialId } from '../core/ids.ts';
import { spendOf } from '../core/measures/spend.ts';
import { addUsage, NO_USAGE, type Paid, type Usage } from '../core/measures/usage.ts';
import type { BookName } from '../core/recordings/book-name.ts';
import { usageOf } from '../core/recordings/books.ts';
import { batchOf } from '../core/run/slots.ts';
import type { TrialSummary } from '../core/run/trial.ts';
import { usageOf as trainingUsage } from '../core/training/journal-usage.ts';
import type { TrainingRef } from '../core/training/plan.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { thisAttempt } from './attempt.ts';
import { bookPrefix, callsPrefix, openBook } from './paid-calls.ts';
import type { RunRecord, RunRecords } from './run-records.ts';
import { TrainingJournal } from './training-journal.ts';

/** Books that are read at once. */
const READERS = 8;

export type CutOffDeps = { readonly records: RunRecords; readonly objects: ObjectStore };
export type CutOffActivities = ReturnType<typeof createCutOffActivities>;

export function createCutOffActivities({ records, objects }: CutOffDeps) {
  const read = async ({ runId, config }: RunRecord, books: readonly BookName[]): Promise<Paid> => {
    const usages = await pLimit(READERS).map(books, async (book) => {
      if (!(await isBegun(objects, runId, book))) return NO_USAGE;
      const { finished, calls } = await openBook(objects, runId, book);
      // No schema: `runTrial` entered it, in this form.
      return finished ? (finished.result as TrialSummary) : usageOf(calls, book.of);
    });
    const usage = addUsage(...usages);
    return { ...usage, usd: spendOf(config.pricing, usage.meters).usd };
  };

  return {
    /**
     * What work took that was broken off and could not tell by itself. Its books are taken over first: an attempt that still hangs somewhere
     * can enter nothing more, and so can send nothing more. Nobody made anything of these calls, so each stands for itself; one without an
     * answer is lost. Work that never began has no book and took nothing; of a trial that ended its result says what it took.
     */
    async readBooks({ run, books }: { run: BlobRef; books: readonly BookName[] }): Promise<Paid> {
      return read(await records.load(run), books);
    },

    /** The same of all trials of a batch whose workflow failed before it said what they took. One that ended took what it said itself. */
    async readBatch({ run, batch }: { run: BlobRef; batch: string }): Promise<Paid> {
      const record = await records.load(run);
      return read(record, await booksOf(objects, record.runId, batch));
    },

    /** What a training took since it stood at `training`: whoever still drives it can enter nothing more. */
    async readTraining({ run, training }: { run: BlobRef; training: TrainingRef }): Promise<Usage> {
      const { runId } = await records.load(run);
      return trainingUsage((await TrainingJournal.takeOver(objects, runId, thisAttempt(), training.at)).generations);
    },
  };
}

/** The books of a batch's trials, retries included. */
async function booksOf(objects: ObjectStore, runId: string, batch: string): Promise<BookName[]> {
  const prefix = callsPrefix(runId);
  const found = new Map<string, BookName>();
  for await (const { key } of objects.list(prefix)) {
    const [of = '', kind] = key.slice(prefix.length).split('/');
    if (batchOf(of) === batch && (kind === 'sample' || kind === 'score')) found.set(`${of}/${kind}`, { of: of as TrialId, kind });
  }
  return [...found.values()];
}

async function isBegun(objects: ObjectStore, runId: string, book: BookName): Promise<boolean> {
  for await (const _ of objects.list(bookPrefix(runId, book))) return true;
  return false;
}
