import { backward, type GradientScope } from './backward.ts';
import { logSumExp } from './elementwise.ts';
import { forwardHead, forwardLayers, type Segment, takeActivations } from './forward.ts';
import { Arena, exponentials, heap as heapOfThread, reserve } from './heap.ts';
import { type TokenLoss, tokenLoss } from './losses.ts';
import { type Resident, resident } from './resident.ts';
import type { DenseWeights, LossBatch, LossResult, ModelShape, TokenRows, WeightedRows } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** Sequences of a batch go through the model in chunks of at most this many rows, so that memory is constant and caches stay warm. */
const CHUNK_ROWS = 512;
/** What 512 rows need: about 4,000 floats a row with all that is kept, and the attention probabilities. */
const arena = new Arena('training', 4 << 20);
const GRADIENT_FLOATS = 125_000;
const gradientAt = reserve('gradient', GRADIENT_FLOATS);

/**
 * Log-probabilities and the loss of a batch under `weights`. With `gradient`, also adds the loss's gradient to that flat
 * vector (the layout of `parameterTable`).
 */
export const lossPass = (weights: DenseWeights, batch: LossBatch, gradient: Float32Array | null, scope: GradientScope): LossResult => {
  batch.datums.forEach((datum, index) => {
    checkDatum(weights.shape, datum, index);
  });
  const model = resident(weights);
  const loss = tokenLoss(batch);
  const logprobs = batch.datums.map(({ targets }) => new Float32Array(targets.length));
  if (gradient) heap.fill(0, gradientAt, gradientAt + gradient.length);
  let sum = 0;
  for (const chunk of chunks(batch.datums)) sum += chunkPass(model, batch.datums, chunk, loss, logprobs, gradient ? scope : null);
  if (gradient) for (let i = 0; i < gradient.length; i++) gradient[i] = (gradient[i] as number) + (heap[gradientAt + i] as number);
  return { logprobs, metrics: { 'loss:sum': sum } };
};

/** Targets of a row; only cross_entropy has more than one. */
const columnsOf = (datum: TokenRows | WeightedRows): number => ('columns' in datum ? (datum.columns ?? 1) : 1);

const checkDatum = ({ vocab, context }: ModelShape, datum: TokenRows, index: number): void => {
  const refuse = (why: string): never => {
    throw new RangeError(`datum ${index}: ${why}`);
  };
  const length = datum.tokens.length;
  if (length === 0 || length > context) refuse(`it has ${length} tokens; this model takes 1 to ${context}`);
  const columns = columnsOf(datum);
  if (!Number.isInteger(columns) || columns < 1) refuse(`columns is ${columns}; it must be a whole number from 1`);
  const { tokens: _, columns: __, ...perTarget } = datum as WeightedRows;
  for (const [field, values] of Object.entries(perTarget))
    if (values.length !== length * columns) refuse(`${field} has ${values.length} entries for ${length} tokens`);
  for (const field of ['tokens', 'targets'] as const) {
    for (const id of datum[field]) if (id < 0 || id >= vocab) refuse(`${field} holds id ${id}; this vocabulary has 0 to ${vocab - 1}`);
  }
};

type Chunk = { readonly first: number; readonly segments: Segment[]; rows: number };

const chunks = (datums: readonly TokenRows[]): Chunk[] => {
  const result: Chunk[] = [];
  datums.forEach(({ tokens }, index) => {
    let chunk = result.at(-1);
    if (!chunk || chunk.rows + tokens.length > CHUNK_ROWS) {
      chunk = { first: index, segments: [], rows: 0 };
      result.push(chunk);
    }
    chunk.segments.push({ firstRow: chunk.rows, tokens, past: 0, cache: null });
    chunk.rows += tokens.length;
  });
  return result;
};

const chunkPass = (
  model: Resident,
  datums: readonly TokenRows[],
  { first, segments, rows }: Chunk,
  loss: TokenLoss,
  logprobs: readonly Float32Array[],
  scope: GradientScope | null,
): number => {
  const { vocab } = model.shape;
  arena.reset();
  const acts = takeActivations(arena, model.shape, segments, rows, scope !== null);
  const logits = arena.take(rows * vocab);
  forwardLayers(model, segments, rows, acts);
  forwardHead(model, acts.normed, rows, logits);
  let sum = 0;
  segments.forEach(({ firstRow, tokens }, offset) => {
    const datum = first + offset;
    const rowsOfDatum = datums[datum] as TokenRows;
    const { targets } = rowsOfDatum;
    const columns = columnsOf(rowsOfDatum);
    const coefficients = new Float64Array(columns);
    const kept = logprobs[datum] as Float32Array;
    for (let row = 0; row < tokens.length; row++) {
      const at = logits + (firstRow + row) * vocab;
      const normalizer = logSumExp(at, vocab, 1);
      const first = row * columns;
      for (let column = 0; column < columns; column++) {
        const logprob = (heap[at + (targets[first + column] as number)] as number) - normalizer;
        kept[first + column] = logprob;
        const { value, coefficient } = loss(datum, first + column, logprob);
        sum += value;
        coefficients[column] = coefficient;
      }
      if (scope !== null) toGradient(at, vocab, targets.subarray(first, first + columns), normalizer, coefficients);
    }
  });
  if (scope !== null) backward(model, segments, rows, acts, logits, gradientAt, scope, arena);
  return sum;
};

/** logits → Σ coefficient · (softmax − onehot) over the row's targets, in place. */
const toGradient = (at: number, vocab: number, targets: Int32Array, normalizer: number, coefficients: Float64Array): void => {
  if (coefficients.every((coefficient) => coefficient === 0)) {
    heap.fill(0, at, at + vocab);
    return;
  }
  const total = coefficients.reduce((sum, coefficient) => sum + coefficient, 0);
  exponentials(at, at, vocab, 1, -normalizer);
  for (let i = 0; i < vocab; i++) heap[at + i] = total * (heap[at + i] as number);
  targets.forEach((target, column) => {
    heap[at + target] = (heap[at + target] as number) - (coefficients[column] as number);
  });
};
