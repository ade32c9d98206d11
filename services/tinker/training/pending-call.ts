import { z } from 'zod';
import { BadRequest, BillingPaused, CredentialRefused, RetryLater } from '../errors.ts';
import type { Future } from '../futures/futures.ts';
import type { TargetCounts } from './loss-result.ts';
import { type CallKind, type CallResults, READERS, REQUEST_TYPES, type ResultContext } from './training-results.ts';

/** A training call that the service has taken, as plain data: keep it, and any process can wait for the result. */
export type SavedCall<Kind extends CallKind = CallKind> = {
  readonly kind: Kind;
  readonly modelId: string;
  /** The call's first sequence number. */
  readonly seqId: number;
  /** One per chunk of a batch, in order; else one. */
  readonly requestIds: readonly string[];
  /** Of forward and forwardBackward: chunk by chunk, how many targets each datum has; null where it has none. */
  readonly targetCounts?: TargetCounts | undefined;
  /** Of saveAndSample: the number of its sampling session, to make the very same call again. */
  readonly samplingSessionSeqId?: number | undefined;
};

const KINDS = Object.keys(READERS) as [CallKind, ...CallKind[]];

const savedCallSchema = z
  .object({
    kind: z.enum(KINDS),
    modelId: z.string(),
    seqId: z.number().int().positive(),
    requestIds: z.array(z.string()).min(1),
    targetCounts: z.array(z.array(z.number().int().nonnegative().nullable())).optional(),
    samplingSessionSeqId: z.number().int().nonnegative().optional(),
  })
  .refine(({ kind, requestIds }) => isLoss(kind) || requestIds.length === 1, {
    path: ['requestIds'],
    message: 'all calls but those over a batch have one request id',
  })
  .refine(({ kind, requestIds, targetCounts }) => !isLoss(kind) || targetCounts?.length === requestIds.length, {
    path: ['targetCounts'],
    message: 'a batch has one list for each of its request ids',
  });

function isLoss(kind: CallKind): boolean {
  return kind === 'forward' || kind === 'forwardBackward';
}

/**
 * Reads what `JSON.stringify(pending.saved)` wrote. With `kind`, it must be a call of that kind, and its result has that kind's type.
 * @throws BadRequest naming the field that does not fit
 */
export function parseSavedCall<Kind extends CallKind = CallKind>(value: unknown, kind?: Kind): SavedCall<Kind> {
  const parsed = savedCallSchema.safeParse(value);
  if (parsed.success) {
    if (isOfKind(parsed.data, kind)) return parsed.data;
    throw new BadRequest(`no saved call of ${kind}: kind: it is of ${parsed.data.kind}`, { call: 'parseSavedCall' });
  }
  const [issue] = parsed.error.issues;
  throw new BadRequest(`no saved call: ${issue?.path.join('.') || 'the whole value'}: ${issue?.message}`, { call: 'parseSavedCall' });
}

function isOfKind<Kind extends CallKind>(saved: SavedCall, kind: Kind | undefined): saved is SavedCall<Kind> {
  return kind === undefined || saved.kind === kind;
}

/** A training call that the service has taken. Its result may be waited for any number of times. */
export class PendingCall<Kind extends CallKind> {
  readonly saved: SavedCall<Kind>;
  readonly #futures: readonly Future[];
  #isFirst: boolean;
  readonly #context: ResultContext;
  readonly #onLost: (error: unknown) => void;

  /** `futures`: null when the call was submitted elsewhere. `onLost` is told of a failure after which no later call of the model makes sense. */
  constructor(saved: SavedCall<Kind>, futures: readonly Future[] | null, context: ResultContext, onLost: (error: unknown) => void) {
    this.saved = saved;
    this.#futures = futures ?? savedFutures(saved);
    this.#isFirst = futures !== null;
    this.#context = context;
    this.#onLost = onLost;
  }

  /**
   * Waits for the result. After BillingPaused, CredentialRefused, RetryLater or an abort it may be asked for again, here or with `resume`: the work goes on.
   * @throws BadRequest or ServiceFailed when the work failed, TrainingStateUnknown when its effect is not known
   */
  async result({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<CallResults[Kind]> {
    const { saved } = this;
    try {
      const result = await READERS[saved.kind](this.#context, { saved, futures: this.#futures, isFirst: this.#isFirst }, signal);
      this.#isFirst = false;
      return result;
    } catch (error) {
      const isOfTheWait = [BillingPaused, CredentialRefused, RetryLater].some((kind) => error instanceof kind);
      if (!isOfTheWait && !signal?.aborted) this.#onLost(error);
      throw error;
    }
  }
}

/** The futures of a call that was submitted elsewhere. */
function savedFutures({ kind, requestIds }: SavedCall): Future[] {
  return requestIds.map((requestId) => ({ requestId, type: REQUEST_TYPES[kind], subject: 'model' }));
}
