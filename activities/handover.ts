import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { PaidCalls } from './paid-calls.ts';

/** Another worker should be given the work at once. */
const NEXT_TRY_MS = 20;

/** How an attempt ends whose worker was told to end. The next one goes on where it stood. */
export function workerShutdown(): ApplicationFailure {
  return ApplicationFailure.create({
    message: 'this worker was told to end: another attempt takes over',
    type: 'WorkerShutdown',
    nextRetryDelay: NEXT_TRY_MS,
  });
}

/**
 * Aborts when the attempt must end: it is cancelled, or its worker drains and no model call of it is on its way any more, so that every
 * answer that was paid for is in the book. Disposing it stops watching.
 */
export function attemptSignal(drain: AbortSignal, calls: PaidCalls): Disposable & { readonly signal: AbortSignal } {
  const handover = new AbortController();
  const give = () => void calls.quiet().then(() => handover.abort(workerShutdown()));
  drain.addEventListener('abort', give, { once: true });
  if (drain.aborted) give();
  return {
    signal: AbortSignal.any([cancellationSignal(), handover.signal]),
    [Symbol.dispose]: () => drain.removeEventListener('abort', give),
  };
}
