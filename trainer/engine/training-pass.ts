import { backward, type GradientScope } from './backward.ts';
import { logSumExp } from './elementwise.ts';
import { forwardHead, forwardLayers, type Segment, takeActivations } from './forward.ts';
import { Arena, exponentials, heap as heapOfThread, reserve } from './heap.ts';
import { type TokenLoss, tokenLoss } from './losses.ts';
import { type Resident, resident } from './resident.ts';
import type { DenseWeights, LossBatch, LossResult, ModelShape, TokenRows } from './types.ts';

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
  const logprobs = batch.datums.map(({ tokens }) => new Float32Array(tokens.length));
  if (gradient) heap.fill(0, gradientAt, gradientAt + gradient.length);
  let sum = 0;
  for (const chunk of chunks(batch.datums)) sum += chunkPass(model, batch.datums, chunk, loss, logprobs, gradient ? scope : null);
  if (gradient) for (let i = 0; i < gradient.length; i++) gradient[i] = (gradient[i] as number) + (heap[gradientAt + i] as number);
  return { logprobs, metrics: { 'loss:sum': sum } };
};

const checkDatum = ({ vocab, context }: ModelShape, datum: TokenRows, index: number): void => {
  const refuse = (why: string): never => {
    throw new RangeError(`datum ${index}: ${why}`);
  };
  const length = datum.tokens.length;
  if (length === 0 || length > context) refuse(`it has ${length} tokens; this model takes 1 to ${context}`);
  for (const [field, values] of Object.entries(datum))
    if (values.length !== length) refuse(`${field} has ${values.length} entries for ${length} tokens`);
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
    const { targets } = datums[datum] as TokenRows;
    const kept = logprobs[datum] as Float32Array;
    for (let row = 0; row < tokens.length; row++) {
      const at = logits + (firstRow + row) * vocab;
      const target = targets[row] as number;
      const normalizer = logSumExp(at, vocab, 1);
      const logprob = (heap[at + target] as number) - normalizer;
      kept[row] = logprob;
      const { value, coefficient } = loss(datum, row, logprob);
      sum += value;
      if (scope !== null) toGradient(at, vocab, target, normalizer, coefficient);
    }
  });
  if (scope !== null) backward(model, segments, rows, acts, logits, gradientAt, scope, arena);
  return sum;
};

/** logits → coefficient · (softmax − onehot), in place. */
const toGradient = (at: number, vocab: number, target: number, normalizer: number, coefficient: number): void => {
  if (coefficient === 0) {
    heap.fill(0, at, at + vocab);
    return;
  }
  exponentials(at, at, vocab, 1, -normalizer);
  for (let i = 0; i < vocab; i++) heap[at + i] = coefficient * (heap[at + i] as number);
  heap[at + target] = (heap[at + target] as number) - coefficient;
};
