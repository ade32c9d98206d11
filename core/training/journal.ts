import { z } from 'zod';
import { type BlobRef, BlobRefText, type StatePath } from '../ids.ts';

/** Who wrote an entry: one attempt at one activity of one execution. */
export const Attempt = z.strictObject({ executionId: z.string(), activityId: z.string(), attempt: z.int() });
export type Attempt = z.infer<typeof Attempt>;

/** How the optimizer's moments came about: zero with a fresh adapter, loaded with the state, or lost although the state had some. */
export const Moments = z.enum(['fresh', 'loaded', 'cold']);
export type Moments = z.infer<typeof Moments>;

/** What a model was made from: the entry of the plan that saved it, or the plan's own base (`entry` null). */
export type Origin = { readonly entry: BlobRef | null; readonly path: StatePath | null; readonly updates: number };

/** What a finished call brought; which of the fields depends on the call. */
export const CallResult = z.strictObject({
  loss: z.number().nullable().optional(),
  gradNorm: z.number().nullable().optional(),
  path: z.string().optional(),
});
export type CallResult = z.infer<typeof CallResult>;

/** A call that the service has taken, as its client wants it back to wait for the result. */
export const SentCall = z.looseObject({ seqId: z.int(), requestIds: z.array(z.string()).min(1) });
export type SentCall = z.infer<typeof SentCall>;

const by = Attempt;
const origin: z.ZodType<Origin> = z.strictObject({
  entry: BlobRefText.nullable(),
  path: z
    .string()
    .transform((path) => path as StatePath)
    .nullable(),
  updates: z.int(),
});

/**
 * What an attempt writes before and after each thing it does, one entry a thing, so that whoever comes after it knows. A call is
 * `intent` before it is sent, `sent` once the service has taken it, `done` when its result is known.
 */
export const JournalEntry = z.discriminatedUnion('is', [
  /** A generation begins: a model is going to be made. `cause`: why the one before it would not do; null for the first. */
  z.strictObject({ is: z.literal('open'), by, cause: z.string().nullable() }),
  z.strictObject({
    is: z.literal('opened'),
    by,
    sessionId: z.string(),
    modelId: z.string(),
    nextSeqId: z.int(),
    origin,
    moments: Moments,
  }),
  /** From here on only this attempt writes. */
  z.strictObject({ is: z.literal('takeover'), by }),
  /** `of`: what the call belongs to, in words. `tokens`: of the sequences that it sends. */
  z.strictObject({ is: z.literal('intent'), by, call: z.string(), of: z.string(), seqId: z.int(), tokens: z.int() }),
  /** The service has refused the call without taking it: it may be made again under the same number. */
  z.strictObject({ is: z.literal('refused'), by }),
  z.strictObject({ is: z.literal('sent'), by, saved: SentCall }),
  z.strictObject({ is: z.literal('done'), by, result: CallResult }),
  /** Nothing more is done with this generation's model. `lost`: because of the service. */
  z.strictObject({ is: z.literal('abandoned'), by, cause: z.string(), lost: z.boolean() }),
]);
export type JournalEntry = z.infer<typeof JournalEntry>;
export type Opened = Extract<JournalEntry, { is: 'opened' }>;

/** One execution of the plan: its entries from the place on where the reader began. */
export type Generation = { readonly number: number; readonly entries: readonly JournalEntry[] };

/** A call as the journal knows it. */
export type JournalCall = {
  readonly call: string;
  readonly of: string;
  readonly seqId: number;
  readonly tokens: number;
  readonly sent: SentCall | null;
  readonly result: CallResult | null;
};

/** What a generation's entries come to. */
export type Standing = {
  readonly opened: Opened | null;
  readonly calls: readonly JournalCall[];
  /** Why it was given up; null while it is not. */
  readonly abandoned: string | null;
};

export function standingOf({ entries }: Generation): Standing {
  let opened: Opened | null = null;
  let abandoned: string | null = null;
  const calls: JournalCall[] = [];
  const amend = (change: Partial<JournalCall>) => {
    const last = calls.pop();
    if (!last) throw new RangeError('the journal answers a call that it does not have');
    calls.push({ ...last, ...change });
  };
  for (const entry of entries) {
    if (entry.is === 'opened') opened = entry;
    else if (entry.is === 'abandoned') abandoned ??= entry.cause;
    else if (entry.is === 'refused') calls.pop();
    else if (entry.is === 'sent') amend({ sent: entry.saved });
    else if (entry.is === 'done') amend({ result: entry.result });
    else if (entry.is === 'intent') {
      const { call, of, seqId, tokens } = entry;
      calls.push({ call, of, seqId, tokens, sent: null, result: null });
    }
  }
  return { opened, calls, abandoned };
}

/** The number that the model's next call takes. */
export function nextSeqIdOf({ opened, calls }: Standing, otherwise: number): number {
  const last = calls.findLast(({ sent }) => sent !== null);
  return last?.sent ? last.sent.seqId + last.sent.requestIds.length : (opened?.nextSeqId ?? otherwise);
}

/** What to do with a generation, given the calls that the plan wants of its model, from the place on where its entries begin. */
export type Decision =
  | { readonly kind: 'go on'; readonly done: readonly CallResult[]; readonly pending: SentCall | null }
  /** The model is of no use: another one must be made. */
  | { readonly kind: 'anew'; readonly cause: string };

/** Goes on with a model only where everything that ever reached it is a beginning of what the plan wants. */
export function compareWithPlan({ calls, abandoned }: Standing, wanted: readonly string[]): Decision {
  if (abandoned !== null) return { kind: 'anew', cause: abandoned };
  const other = calls.findIndex(({ call }, i) => call !== wanted[i]);
  if (other >= 0) {
    const [made, instead] = [calls[other]?.call, wanted[other] ?? 'nothing more'];
    return { kind: 'anew', cause: `its model was given another call than the plan has: "${made}" instead of "${instead}"` };
  }
  const last = calls.at(-1);
  if (last && last.sent === null) return { kind: 'anew', cause: `nobody knows whether the service took the call "${last.call}"` };
  return {
    kind: 'go on',
    done: calls.flatMap(({ result }) => (result ? [result] : [])),
    pending: last && last.result === null ? last.sent : null,
  };
}

/** True when a later attempt at the same activity has written: this one has been given up. */
export function isSuperseded(generations: readonly Generation[], me: Attempt): boolean {
  return generations.some(({ entries }) =>
    entries.some(({ by }) => by.executionId === me.executionId && by.activityId === me.activityId && by.attempt > me.attempt),
  );
}

/** How often the service has lost a model since the place where the reader began. */
export const timesLost = (generations: readonly Generation[]) =>
  generations.flatMap(({ entries }) => entries).filter((entry) => entry.is === 'abandoned' && entry.lost).length;
