import { z } from 'zod';
import type { Release } from '../back-pressure/semaphore.ts';
import { ofTakenCall } from '../call-fate.ts';
import { ServiceFailed } from '../errors.ts';
import type { Call, Caller } from '../http/caller.ts';
import { type Failure, futureError, type Subject } from '../http/classify.ts';
import type { HttpAnswer } from '../http/http.ts';
import { connectionFailure, queueStateOf } from '../http/http-failure.ts';
import { parseJson, parseValue } from '../http/parse-answer.ts';
import type { RetryLimits } from '../http/retry.ts';
import { Waiting } from '../http/waiting.ts';
import { failedSchema, metadataSchema, pendingSchema, promiseSchema } from './answers.ts';

/** The result types that retrieve_future is told. */
export type RequestType =
  | 'CreateModel'
  | 'Forward'
  | 'ForwardBackward'
  | 'OptimStep'
  | 'SaveWeights'
  | 'SaveWeightsForSampler'
  | 'SaveWeightsExternal'
  | 'LoadWeights'
  | 'UnloadModel'
  | 'Sample';

/** Work that the service has taken. Plain JSON: it may be saved, and its result asked for by another process. */
export type Future = {
  readonly requestId: string;
  readonly type: RequestType;
  /** What is lost when the service no longer knows the future. */
  readonly subject: Subject;
  /** How long the submission took, ms. */
  readonly roundTripMs?: number;
  /** The names of the sequences that a sample will bring, where the service gives them. */
  readonly sampleSequenceIds?: readonly string[];
};

/** A result as the server sent it: newer servers send samples and losses as protobuf, older ones everything as JSON. */
export type RawResult = { readonly protobuf: Uint8Array } | { readonly json: unknown };

export type RetrieveOptions = {
  /** Of the result, when the service has told it. */
  readonly sizeBytes?: number | null;
  readonly limits?: Partial<RetryLimits>;
};

/** A service answers a poll before that. */
export const POLL_TIMEOUT_MS = 45_000;

const anything = z.unknown();

/** Starts work and returns its future. A submission may be repeated: it carries its seq_id. */
export async function submit(caller: Caller, call: Call, type: RequestType, resultSubject: Subject): Promise<Future> {
  const startMs = caller.nowMs();
  const { request_id, sample_sequence_ids: ids } = await caller.json(call, promiseSchema);
  const future = { requestId: request_id, type, subject: resultSubject, roundTripMs: caller.nowMs() - startMs };
  return ids ? { ...future, sampleSequenceIds: ids } : future;
}

/**
 * Long-polls until the future ends. There is no deadline: it gives up only when nothing of this client has completed for
 * `stalledMs`, or there was no sign of life for `noProgressMs`. It may be called again for the same future, e.g. after
 * BillingPaused, or in another process.
 * @throws BadRequest or ServiceFailed when the work failed, RetryLater when it does not move, what the subject is lost as when it is gone
 */
export async function retrieve(
  caller: Caller,
  future: Future,
  signal: AbortSignal | undefined,
  { sizeBytes = null, limits = {} }: RetrieveOptions = {},
): Promise<RawResult> {
  const waiting = new Waiting(caller);
  const untilClosed = caller.untilClosed(signal);
  let release: Release | null = null;
  try {
    if (sizeBytes !== null) release = await caller.backPressure.response(sizeBytes, untilClosed);
    for (;;) {
      const call = { ...pollCall(caller, future, release === null, signal), limits };
      const outcome = await caller.attempt({ ...call, headers: waiting.headers(call) });
      const said = 'failure' in outcome ? { pending: outcome.failure } : read(outcome.answer, caller, future, release === null);
      if ('result' in said) {
        caller.noteCompletion();
        return said.result;
      }
      if ('pending' in said) await waiting.after(said.pending, call);
      else {
        waiting.answered();
        release ??= await caller.backPressure.response(said.sizeBytes, untilClosed);
      }
    }
  } catch (error) {
    throw ofTakenCall(error);
  } finally {
    release?.();
  }
}

/** @throws ServiceFailed when the result is not the JSON of this schema */
export async function retrieveJson<Schema extends z.ZodType>(
  caller: Caller,
  future: Future,
  schema: Schema,
  signal: AbortSignal | undefined,
): Promise<z.infer<Schema>> {
  const result = await retrieve(caller, future, signal);
  if ('json' in result) return parseValue(result.json, schema, caller, future.type, future.requestId);
  throw new ServiceFailed('the result is protobuf where the protocol has JSON', { call: future.type, requestId: future.requestId });
}

type Said = { readonly result: RawResult } | { readonly pending: Failure } | { readonly sizeBytes: number };

/**
 * What says that it is pending, only metadata or failed, is that whatever its other fields hold: a result it is not.
 * @throws BadRequest or ServiceFailed when the work failed
 */
function read(answer: HttpAnswer, caller: Caller, { type, requestId }: Future, allowedMetadataOnly: boolean): Said {
  if (answer.isProtobuf) return { result: { protobuf: answer.body } };
  const json = parseJson(answer, anything, caller, 'retrieve_future', requestId);
  const pending = pendingSchema.safeParse(json);
  if (pending.success) {
    const { queue_state: state, queue_state_reason: reason } = pending.data;
    // The same as a 408 with this body.
    return {
      pending: { ...connectionFailure(caller.scrub(reason ?? ''), undefined), status: 408, queueState: state ? queueStateOf(state) : null },
    };
  }
  const metadata = metadataSchema.safeParse(json);
  if (metadata.success && !allowedMetadataOnly) {
    throw new ServiceFailed('the service tells the size of the result again instead of sending it', { call: type, requestId });
  }
  if (metadata.success) return { sizeBytes: metadata.data.response_payload_size };
  const failed = failedSchema.safeParse(json);
  if (failed.success) {
    const { error, category } = failed.data;
    throw futureError(caller.scrub(typeof error === 'string' ? error : JSON.stringify(error)), category, type, requestId);
  }
  return { result: { json } };
}

function pollCall(caller: Caller, future: Future, allowMetadataOnly: boolean, signal: AbortSignal | undefined): Call {
  const { requestId, type, subject, roundTripMs } = future;
  const iteration = caller.polls.get(future) ?? 0;
  caller.polls.set(future, iteration + 1);
  const isFirst = iteration === 0 && roundTripMs !== undefined;
  const isProtobuf = type === 'Sample' || type === 'Forward' || type === 'ForwardBackward';
  return {
    method: 'POST',
    path: 'retrieve_future',
    body: JSON.stringify({ request_id: requestId, allow_metadata_only: allowMetadataOnly }),
    headers: {
      'x-tinker-request-type': type,
      'x-tinker-request-iteration': String(iteration),
      ...(isFirst ? { 'x-tinker-create-promise-roundtrip-time': String(roundTripMs / 1000) } : {}),
      ...(isProtobuf ? { accept: 'application/x-protobuf' } : {}),
    },
    timeoutMs: Math.min(POLL_TIMEOUT_MS, caller.connection.requestTimeoutMs),
    phase: 'poll',
    subject,
    requestId,
    reportedAs: type,
    signal,
  };
}
