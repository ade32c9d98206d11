import type { CallResult } from '../core/training/journal.ts';
import { batchName, type PlannedBatch } from '../core/training/plan.ts';
import type { CallKind, CallResults, PendingCall, TrainingClient } from '../services/tinker/index.ts';
import { type BatchUpdates, lossScale, type Sequence, tokensOf } from './batch-updates.ts';

type Calling = { readonly signal: AbortSignal };
/** How long the service keeps what is saved; for ever without one. */
type SaveLife = { readonly ttlSeconds?: number };

/** One call of a model, as the plan wants it. The same call has the same name whoever makes it, and no other call has it. */
export type Operation = {
  readonly name: string;
  readonly kind: CallKind;
  /** What it belongs to, in words. */
  readonly of: string;
  /** Tokens of the sequences it sends. */
  readonly tokens: number;
  submit(training: TrainingClient, calling: Calling): Promise<PendingCall<CallKind>>;
  /** What is kept of the result. */
  read(result: CallResults[CallKind]): CallResult;
};

type OperationOf<Kind extends CallKind> = Omit<Operation, 'submit' | 'read' | 'kind'> & {
  readonly kind: Kind;
  submit(training: TrainingClient, calling: Calling): Promise<PendingCall<Kind>>;
  read(result: CallResults[Kind]): CallResult;
};

/** The kind of a saved call is checked against the operation's before its result is read. */
const operation = <Kind extends CallKind>(of: OperationOf<Kind>): Operation => of as unknown as Operation;

/** Adam's fixed settings: those of the protocol's own defaults. */
const ADAM = { beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 } as const;

/** What names a batch: what it is made from, and how many updates it comes to. */
export type NamedBatch = Pick<PlannedBatch, 'source' | 'digest'> & { readonly updates: number };

/** The names of a batch's calls: for each update its gradients and its step. */
export function batchCalls(batch: NamedBatch): string[] {
  return Array.from({ length: batch.updates }, (_, i) => [callName('gradients', batch, i), callName('update', batch, i)]).flat();
}

function callName(what: 'gradients' | 'update', { source, digest, updates }: NamedBatch, index: number): string {
  return `${what} ${batchName(source)} ${index + 1}/${updates} ${digest.slice(0, 16)}`;
}

/** The calls of a batch, in the order of `batchCalls`. */
export function batchOperations(
  batch: Pick<PlannedBatch, 'source' | 'digest'>,
  { updates, loss, learningRate }: BatchUpdates,
): Operation[] {
  const named = { source: batch.source, digest: batch.digest, updates: updates.length };
  const of = batchName(batch.source);
  return updates.flatMap((sequences, i) => [
    operation<'forwardBackward'>({
      name: callName('gradients', named, i),
      kind: 'forwardBackward',
      of,
      tokens: tokensOf(sequences),
      submit: (training, calling) => training.submitForwardBackward(sequences, loss, calling),
      read: ({ metrics }) => ({ loss: told(metrics['loss:sum']) }),
    }),
    operation<'optimStep'>({
      name: callName('update', named, i),
      kind: 'optimStep',
      of,
      tokens: 0,
      submit: (training, calling) => training.submitOptimStep({ learningRate, ...ADAM }, calling),
      read: ({ metrics }) => ({ gradNorm: gradNormIn(metrics) }),
    }),
  ]);
}

/** How far a batch's updates have come, from the results of its calls. */
export function seenUpdates(updates: readonly (readonly Sequence[])[], results: readonly CallResult[]): PlannedBatch['seen'] {
  return updates.map((sequences, i) => ({
    loss: results[2 * i]?.loss ?? null,
    tokens: tokensOf(sequences),
    weight: lossScale(sequences),
  }));
}

/** The cross-entropy of a small sequence, without a gradient. `after` says with which weights. */
export function probeOperation(tokens: readonly number[], after: string): Operation {
  const ids = Int32Array.from(tokens);
  const sequence = {
    modelInput: ids.subarray(0, -1),
    targetTokens: ids.subarray(1),
    weights: new Float32Array(ids.length - 1).fill(1),
  };
  return operation<'forward'>({
    name: `probe ${after}`,
    kind: 'forward',
    of: `probe ${after}`,
    tokens: tokens.length,
    submit: (training, calling) => training.submitForward([sequence], 'cross_entropy', calling),
    // From the log-probabilities, which every service gives; some give no loss.
    read: ({ lossFnOutputs: [output] }) => ({ loss: told(negativeSum(output?.logprobs?.values)) }),
  });
}

export function stateOperation(name: string, life: SaveLife = {}): Operation {
  return operation<'saveState'>({
    name: `state ${name}`,
    kind: 'saveState',
    of: name,
    tokens: 0,
    submit: (training, calling) => training.submitSaveState(name, { ...calling, ...life }),
    read: (path) => ({ path }),
  });
}

export function samplerOperation(name: string, life: SaveLife = {}): Operation {
  return operation<'saveForSampler'>({
    name: `sampler ${name}`,
    kind: 'saveForSampler',
    of: name,
    tokens: 0,
    submit: (training, calling) => training.submitSaveForSampler(name, { ...calling, ...life }),
    read: (path) => ({ path }),
  });
}

function negativeSum(values: ArrayLike<number | bigint> | undefined): number | undefined {
  if (values === undefined) return undefined;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum -= Number(values[i]);
  return sum;
}

/** What is no number says nothing: JSON has no word for it. */
function told(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

/** Services name it differently; absent is unknown, not zero. */
function gradNormIn(metrics: Readonly<Record<string, number>>): number | null {
  const key = Object.keys(metrics).find((name) => /grad_norm/.test(name));
  return key === undefined ? null : told(metrics[key]);
}
