import { z } from 'zod';
import { failedSchema, metadataSchema, pendingSchema, promiseSchema } from './answers.ts';
import { type Call, type Caller, parseJson, parseValue } from './caller.ts';
import { futureError, type Subject } from './classify.ts';
import { RetryLater, ServiceFailed } from './errors.ts';
import { queueStateOf } from './http.ts';

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

export type Future = {
  readonly requestId: string;
  readonly type: RequestType;
  /** What is lost when the service no longer knows the future. */
  readonly subject: Subject;
  /** How long the submission took, ms. */
  readonly roundTripMs: number;
  /** The names of the sequences that a sample will bring, where the service gives them. */
  readonly sampleSequenceIds?: readonly string[];
};

/** A result as the server sent it: newer servers send samples and losses as protobuf, older ones everything as JSON. */
export type RawResult = { readonly protobuf: Uint8Array } | { readonly json: unknown };

const anything = z.unknown();

/** Starts work and returns its future. A submission may be repeated: it carries its seq_id. */
export async function submit(caller: Caller, call: Call, type: RequestType, resultSubject: Subject): Promise<Future> {
  const startMs = performance.now();
  const { request_id, sample_sequence_ids: ids } = await caller.json(call, promiseSchema);
  const future = { requestId: request_id, type, subject: resultSubject, roundTripMs: performance.now() - startMs };
  return ids ? { ...future, sampleSequenceIds: ids } : future;
}

/**
 * Long-polls until the future ends. There is no deadline: it gives up only when nothing of this client has completed for `stalledMs`.
 * @throws BadRequest or ServiceFailed when the work failed, RetryLater when it does not move, what the subject is lost as when it is gone
 */
export async function retrieve(caller: Caller, future: Future, signal: AbortSignal | undefined): Promise<RawResult> {
  const waitingSinceMs = performance.now();
  const body = JSON.stringify({ request_id: future.requestId, allow_metadata_only: false });
  for (let iteration = 0; ; iteration++) {
    const answer = await caller.send({
      method: 'POST',
      path: 'retrieve_future',
      body,
      headers: pollHeaders(future, iteration),
      phase: 'poll',
      subject: future.subject,
      requestId: future.requestId,
      waitingSinceMs,
      signal,
    });
    if (answer.isProtobuf) {
      caller.noteCompletion();
      return { protobuf: answer.body };
    }
    const json = parseJson(answer, anything, 'retrieve_future');
    const pending = pendingSchema.safeParse(json);
    if (!pending.success) {
      // A server may only announce the size when it was asked to; then the next poll brings the result.
      if (metadataSchema.safeParse(json).success) continue;
      const failed = failedSchema.safeParse(json);
      if (failed.success) throw futureError(failed.data.error, failed.data.category, future.type, future.requestId);
      caller.noteCompletion();
      return { json };
    }
    giveUpWhenStalled(caller, future, waitingSinceMs, pending.data);
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
  if ('json' in result) return parseValue(result.json, schema, future.type);
  throw new ServiceFailed('the result is protobuf where the protocol has JSON', { call: future.type, requestId: future.requestId });
}

function giveUpWhenStalled(caller: Caller, future: Future, waitingSinceMs: number, pending: z.infer<typeof pendingSchema>): void {
  const queueState = pending.queue_state ? queueStateOf(pending.queue_state) : null;
  const reason = pending.queue_state_reason ?? null;
  caller.noteWait(future.type, waitingSinceMs, queueState, reason);
  const stalledMs = caller.stalledForMs(waitingSinceMs);
  if (stalledMs <= caller.connection.stalledMs) return;
  const message = `nothing has completed for ${Math.round(stalledMs / 1000)} s (queue: ${queueState ?? 'no state given'}${reason ? `, ${reason}` : ''})`;
  throw new RetryLater(message, { call: future.type, requestId: future.requestId, queueState });
}

function pollHeaders({ type, roundTripMs }: Future, iteration: number): Record<string, string> {
  const headers: Record<string, string> = { 'x-tinker-request-type': type, 'x-tinker-request-iteration': String(iteration) };
  if (iteration === 0) headers['x-tinker-create-promise-roundtrip-time'] = String(roundTripMs / 1000);
  if (type === 'Sample' || type === 'Forward' || type === 'ForwardBackward') headers.accept = 'application/x-protobuf';
  return headers;
}
