import { z } from 'zod';

/** Every fault of a plan, by `kind`. docs/trainer-faults.md shows each in use. */

const ms = z.number().int().min(1).max(3_600_000);
const seconds = z.number().int().min(1).max(86_400);
const queueState = z.enum(['active', 'paused_capacity', 'paused_rate_limit']);

/** Answers itself, with `{"detail"}`; the service hears nothing. */
const status = z
  .strictObject({
    kind: z.literal('status'),
    status: z.literal([400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 422, 429, 500, 501, 502, 503, 504]),
    detail: z.string().optional(),
    /** The header `retry-after`. */
    retry_after_s: seconds.optional(),
    /** The header `retry-after-ms`. */
    retry_after_ms: ms.optional(),
    /** The header `x-should-retry`. */
    should_retry: z.boolean().optional(),
    /** Stand in the body, as they do in a 408 to a poll. */
    queue_state: queueState.optional(),
    queue_state_reason: z.string().optional(),
    /** The header `www-authenticate: Bearer error="invalid_token"`. */
    invalid_token: z.boolean().optional(),
  })
  .refine((fault) => fault.invalid_token !== true || fault.status === 401, { path: ['invalid_token'], error: 'goes with status 401 only' });

const logprobPlace = z.enum(['samples', 'prompt', 'loss']);
/** Which log-probabilities of a result: of sampled tokens, of the prompt, of a loss. Without it, all that the result has. */
const place = { in: logprobPlace.optional() };
/** Indices in every row of them, from the end when negative; or a share of all, drawn by the rule's seed. Without either, all. */
const positions = { at: z.array(z.number().int()).min(1).optional(), share: z.number().gt(0).max(1).optional() };

/** Overwrites log-probabilities. `null` is what it is in a JSON result, and NaN in a binary one. */
const logprobs = z
  .strictObject({ kind: z.literal('logprobs'), value: z.enum(['nan', 'null', 'inf', '-inf']), ...place, ...positions })
  .refine((fault) => fault.at === undefined || fault.share === undefined, { path: ['share'], error: 'goes without at' });
/** Adds noise to log-probabilities, which stay at or below 0. `amount_nats`: the deviation, or half the width when uniform. */
const jitter = z.strictObject({
  kind: z.literal('jitter'),
  amount_nats: z.number().positive(),
  distribution: z.enum(['gaussian', 'uniform']).default('gaussian'),
  ...place,
});
/** One log-probability more than there are tokens. */
const extraLogprob = z.strictObject({ kind: z.literal('extra_logprob'), ...place });
const omitLogprobs = z.strictObject({ kind: z.literal('omit_logprobs'), ...place });
/** The result as servers send it that know no binary results. */
const jsonResult = z.strictObject({ kind: z.literal('json_result') });

const resultFaults = [logprobs, jitter, extraLogprob, omitLogprobs, jsonResult] as const;
export type LogprobPlace = z.infer<typeof logprobPlace>;

const pending = z
  .strictObject({
    kind: z.literal('pending'),
    /** The future stays pending for so many polls, or so long; `ms` counts from its first poll. */
    polls: z.number().int().min(1).optional(),
    ms: ms.optional(),
    queue_state: queueState.default('paused_capacity'),
    reason: z.string().optional(),
    /** How long each of those polls is held. */
    hold_ms: ms.default(20),
  })
  .refine((fault) => (fault.polls === undefined) !== (fault.ms === undefined), { path: ['polls'], error: 'give either polls or ms' });

const callFaults = [
  status,
  /** Status 400 with `content-length: 0`, as proxies answer. */
  z.strictObject({ kind: z.literal('empty_400') }),
  /** The connection is closed before the service hears of the call. */
  z.strictObject({ kind: z.literal('drop') }),
  /** The service takes the call; then the connection is closed instead of an answer. */
  z.strictObject({ kind: z.literal('drop_after') }),
  /** No answer for so long, then the connection is closed; the service hears nothing. */
  z.strictObject({ kind: z.literal('hang'), ms }),
  /** The service takes the call at once and its answer is sent so much later. */
  z.strictObject({ kind: z.literal('delay_promise'), ms }),
  /** The call is handed to the service twice. Two different promises are answered with 500. */
  z.strictObject({ kind: z.literal('duplicate_promise'), send: z.enum(['first', 'second']).default('first') }),
  pending,
  /** Optimizer moments are left behind by a load that asked for them, and that says it went well. */
  z.strictObject({ kind: z.literal('drop_moments') }),
  /** Prompts with their max_tokens, and training sequences, above it get a 400; the capabilities tell the nominal limit still. */
  z.strictObject({ kind: z.literal('context_limit'), tokens: z.number().int().min(1) }),
  /** A named save for sampling answers its path and is gone then: not listed, not sampled from. */
  z.strictObject({ kind: z.literal('named_save_does_not_persist') }),
  /** The model of the call is unknown from this call on. */
  z.strictObject({ kind: z.literal('lost_model'), status: z.literal([404, 410]).default(404) }),
  /** The session of the call, with all that is in it, is unknown from this call on. */
  z.strictObject({ kind: z.literal('lost_session'), status: z.literal([404, 410]).default(410) }),
] as const;

export const faultSchema = z.discriminatedUnion('kind', [...callFaults, ...resultFaults]);
export type Fault = z.infer<typeof faultSchema>;
/** Of one kind, or of several. */
export type FaultOf<Kind extends Fault['kind']> = Extract<Fault, { kind: Kind }>;
/** A change to a result, made when it is handed out. */
export type ResultFault = z.infer<(typeof resultFaults)[number]>;
export const RESULT_FAULTS: readonly Fault['kind'][] = resultFaults.map((schema) => schema.shape.kind.value);
