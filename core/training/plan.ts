import { z } from 'zod';
import { type BlobRef, BlobRefText, type StatePath } from '../ids.ts';

/** Where a plan starts: saved training state, or a fresh adapter (null). */
export type PlanBase = {
  readonly statePath: StatePath | null;
  /** Optimizer updates that the state stands for. */
  readonly updates: number;
};
export const FRESH_ADAPTER: PlanBase = { statePath: null, updates: 0 };

/** What a batch's updates are made from. With the run's pinned config it gives the same updates every time. */
export type BatchSource =
  | {
      readonly kind: 'step';
      readonly step: number;
      /** Scored episodes, in the order of their slots, with their candidates where the loss needs them. */
      readonly episodes: readonly { readonly scored: BlobRef; readonly candidates: BlobRef | null }[];
    }
  | {
      readonly kind: 'warm-up';
      readonly update: number;
      /** The warm-up's set, and the places in it of the sequences. */
      readonly set: BlobRef;
      readonly places: readonly number[];
    };

/** One optimizer update, as it was seen when it was made. */
export type SeenUpdate = {
  /** Summed over the tokens, before the update; null where the service does not say. */
  readonly loss: number | null;
  /** Tokens of the sequences sent. */
  readonly tokens: number;
  /** Sum of the sizes of what multiplies the tokens' log-probabilities in the loss (weights or advantages). */
  readonly weight: number;
};

/** A small sequence, and its cross-entropy (nats, summed) with the weights of one moment. */
export type Probe = { readonly tokens: readonly number[]; readonly lossNats: number };

/** A batch that was trained on. */
export type PlannedBatch = {
  readonly is: 'batch';
  readonly source: BatchSource;
  /** Of the source: two batches with the same one are the same. */
  readonly digest: string;
  readonly seen: readonly SeenUpdate[];
  /** A small sequence of the batch, for later probes. */
  readonly probeTokens: readonly number[];
  /** Optimizer updates that the weights stand for after this batch. */
  readonly updates: number;
  readonly previous: BlobRef | null;
};

/** State that was saved: a place from which the batches after it can be trained on again. */
export type PlannedState = {
  readonly is: 'state';
  readonly name: string;
  readonly path: StatePath;
  /** Null where nothing was trained before, or the service gives no log-probabilities. */
  readonly probe: Probe | null;
  readonly updates: number;
  readonly previous: BlobRef | null;
};

/** An entry of a plan, kept as a blob; each names the one before it. */
export type PlanEntry = PlannedBatch | PlannedState;

/** Where in the journal of a training something stands, and the model of the service that it is about. */
export type JournalPlace = {
  readonly generation: number;
  /** The first entry after it. */
  readonly entry: number;
  readonly sessionId: string;
  readonly modelId: string;
  /** The number that the model's next call takes. */
  readonly nextSeqId: number;
};

/** A plan up to some entry, and where its newest execution stood when that was reached. Its weights are a function of `base` and `head` alone. */
export type TrainingRef = {
  readonly base: PlanBase;
  /** The newest entry; null while there is none. */
  readonly head: BlobRef | null;
  /** Optimizer updates that the weights stand for. */
  readonly updates: number;
  readonly at: JournalPlace;
};

/** What a batch is called in words: `step-0007`, `warm-up 3`. */
export const batchName = (source: BatchSource) =>
  source.kind === 'step' ? `step-${String(source.step).padStart(4, '0')}` : `warm-up ${source.update}`;

/** Batches of a chain of entries, in the order they were trained; `chain` is from the newest back. */
export function batchesIn(chain: readonly PlanEntry[]): PlannedBatch[] {
  return chain.filter((entry) => entry.is === 'batch').toReversed();
}

const StateText = z.string().transform((path) => path as StatePath);
const previous = BlobRefText.nullable();
const Source: z.ZodType<BatchSource> = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('step'),
    step: z.int(),
    episodes: z.array(z.strictObject({ scored: BlobRefText, candidates: BlobRefText.nullable() })),
  }),
  z.strictObject({ kind: z.literal('warm-up'), update: z.int(), set: BlobRefText, places: z.array(z.int()) }),
]);
const tokens = z.array(z.int());

/** An entry where it is read from a blob. */
export const PlanEntry: z.ZodType<PlanEntry> = z.discriminatedUnion('is', [
  z.strictObject({
    is: z.literal('batch'),
    source: Source,
    digest: z.string(),
    seen: z.array(z.strictObject({ loss: z.number().nullable(), tokens: z.int(), weight: z.number() })),
    probeTokens: tokens,
    updates: z.int(),
    previous,
  }),
  z.strictObject({
    is: z.literal('state'),
    name: z.string(),
    path: StateText,
    probe: z.strictObject({ tokens, lossNats: z.number() }).nullable(),
    updates: z.int(),
    previous,
  }),
]);
