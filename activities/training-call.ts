import { cancellationSignal } from '@temporalio/activity';
import { type CallResult, nextSeqIdOf, type SentCall } from '../core/training/journal.ts';
import type { JournalPlace } from '../core/training/plan.ts';
import { callFate, parseSavedCall, type TinkerClient } from '../services/tinker/index.ts';
import type { TrainingJournal } from './training-journal.ts';
import type { Operation } from './training-operations.ts';

export type CalledModel = Pick<JournalPlace, 'sessionId' | 'modelId' | 'nextSeqId'>;

/** Makes a call of the newest generation's model, journalled before and after each thing that is done. One that is pending is only waited for. */
export async function makeCall(
  client: TinkerClient,
  journal: TrainingJournal,
  model: CalledModel,
  operation: Operation,
  pending: SentCall | null,
): Promise<CallResult> {
  const call = pending ? client.resume(parseSavedCall(pending, operation.kind)) : await submit(client, journal, model, operation);
  const result = operation.read(await call.result({ signal: cancellationSignal() }));
  await journal.write({ is: 'done', result });
  return result;
}

async function submit(client: TinkerClient, journal: TrainingJournal, { modelId, nextSeqId }: CalledModel, operation: Operation) {
  const seqId = nextSeqIdOf(journal.standing, nextSeqId);
  const training = client.training(modelId, { nextSeqId: seqId });
  await journal.write({ is: 'intent', call: operation.name, of: operation.of, seqId, tokens: operation.tokens });
  await journal.assertMine();
  try {
    const call = await operation.submit(training, { signal: later(cancellationSignal(), SUBMIT_GRACE_MS) });
    await journal.write({ is: 'sent', saved: { ...call.saved, requestIds: [...call.saved.requestIds] } });
    return call;
  } catch (error) {
    // Of several chunks some may have been taken.
    if (isRefusal(error) && training.nextSeqId === seqId + 1) await journal.write({ is: 'refused' });
    throw error;
  }
}

/** The service has not taken the call: it may be made again under its number. */
const isRefusal = (error: unknown): boolean => ['unsent', 'refused', 'unpaid'].includes(callFate(error));

/** A call that is being sent when its worker is told to end has so long to be taken: else nobody knows whether it was. */
const SUBMIT_GRACE_MS = 5_000;

function later(signal: AbortSignal, afterMs: number): AbortSignal {
  const controller = new AbortController();
  const abort = () => void setTimeout(() => controller.abort(signal.reason), afterMs).unref();
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return controller.signal;
}
