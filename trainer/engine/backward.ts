import { rmsNormBackward, rotate, swigluBackward } from './elementwise.ts';
import { type Activations, type LayerRows, type Segment, transposeRows } from './forward.ts';
import { type Arena, heap as heapOfThread, matmul, roundUp4 } from './heap.ts';
import type { Resident } from './resident.ts';
import type { ModelShape } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** `all` for pretraining; `linears` leaves out what LoRA does not need: the embedding and the norms. */
export type GradientScope = 'all' | 'linears';

/** Rows summed at a time, so that a column panel of both factors stays in the nearest cache. */
const SUM_ROWS = 256;

/** gradient[out, in] += dOutᵀ · input, summed over rows. */
const addWeightGradient = (dOut: number, outWidth: number, input: number, inWidth: number, gradient: number, rows: number): void => {
  for (let from = 0; from < rows; from += SUM_ROWS) {
    const count = Math.min(SUM_ROWS, rows - from);
    const a = { at: dOut + from * outWidth, row: 1, column: outWidth };
    matmul(a, { at: input + from * inWidth, row: inWidth }, { at: gradient, row: inWidth }, outWidth, inWidth, count, true);
  }
};

/**
 * Adds the gradient of the loss to the flat vector at `gradient`, given dLogits [rows, vocab] and what the forward pass kept.
 * Overwrites gateUp and qkv of the activations.
 */
export const backward = (
  model: Resident,
  segments: readonly Segment[],
  rows: number,
  acts: Activations,
  dLogits: number,
  gradient: number,
  scope: GradientScope,
  arena: Arena,
): void => {
  const { shape, places, stored } = model;
  const { width, hidden, vocab } = shape;
  const all = scope === 'all';
  const dResidual = arena.take(rows * width);
  const dNormed = arena.take(rows * width);
  const dActivated = arena.take(rows * hidden);
  const dQkv = arena.take(rows * 3 * width);
  const scratch = takeAttentionScratch(arena, shape);
  const back = (dOut: number, outWidth: number, weights: number, inWidth: number, dIn: number) =>
    matmul({ at: dOut, row: outWidth }, { at: stored + weights, row: inWidth }, { at: dIn, row: inWidth }, rows, inWidth, outWidth);
  const backNorm = (x: number, gain: number, inverse: number) =>
    rmsNormBackward(dNormed, x, stored + gain, inverse, dResidual, all ? gradient + gain : -1, rows, width);

  if (all) addWeightGradient(dLogits, vocab, acts.normed, width, gradient + places.embed, rows);
  back(dLogits, vocab, places.embed, width, dNormed);
  heap.fill(0, dResidual, dResidual + rows * width);
  backNorm(acts.output, places.norm, acts.inverse);
  for (let layer = shape.layers - 1; layer >= 0; layer--) {
    const at = acts.layers[layer] as LayerRows;
    const place = places.layers[layer] as (typeof places.layers)[number];
    addWeightGradient(dResidual, width, at.activated, hidden, gradient + place.down, rows);
    back(dResidual, width, place.down, hidden, dActivated);
    swigluBackward(at.gateUp, dActivated, rows, hidden);
    addWeightGradient(at.gateUp, 2 * hidden, at.mlpNormed, width, gradient + place.gateUp, rows);
    back(at.gateUp, 2 * hidden, place.gateUp, width, dNormed);
    backNorm(at.middle, place.mlpNorm, at.mlpInverse);
    addWeightGradient(dResidual, width, at.attended, width, gradient + place.o, rows);
    back(dResidual, width, place.o, width, dNormed);
    attendBackward(shape, segments, at, dNormed, dQkv, scratch);
    addWeightGradient(dQkv, 3 * width, at.attnNormed, width, gradient + place.qkv, rows);
    back(dQkv, 3 * width, place.qkv, width, dNormed);
    backNorm(at.input, place.attnNorm, at.attnInverse);
  }
  if (all) addEmbeddingGradient(shape, segments, dResidual, gradient + places.embed);
};

const addEmbeddingGradient = ({ width }: ModelShape, segments: readonly Segment[], dResidual: number, gradient: number): void => {
  for (const { firstRow, tokens } of segments) {
    for (let i = 0; i < tokens.length; i++) {
      const to = gradient + (tokens[i] as number) * width;
      const from = dResidual + (firstRow + i) * width;
      for (let j = 0; j < width; j++) heap[to + j] = (heap[to + j] as number) + (heap[from + j] as number);
    }
  }
};

type AttentionScratch = { readonly dScores: number; readonly valuesTransposed: number };
const takeAttentionScratch = (arena: Arena, { context, width, heads }: ModelShape): AttentionScratch => ({
  dScores: arena.take(context * context),
  valuesTransposed: arena.take((width / heads) * context),
});

/** dQkv of every row from dAttended; the probabilities were kept, sequence by sequence and head by head. */
const attendBackward = (
  shape: ModelShape,
  segments: readonly Segment[],
  at: LayerRows,
  dAttended: number,
  dQkv: number,
  scratch: AttentionScratch,
): void => {
  const { width, heads, context } = shape;
  const headWidth = width / heads;
  const row = 3 * width;
  const { dScores, valuesTransposed } = scratch;
  let probabilities = at.probabilities;
  for (const { firstRow, tokens } of segments) {
    const count = tokens.length;
    const stride = roundUp4(count);
    const qkv = at.qkv + firstRow * row;
    const dRows = dQkv + firstRow * row;
    for (let head = 0; head < heads; head++) {
      const lane = head * headWidth;
      const dOut = { at: dAttended + firstRow * width + lane, row: width };
      const [q, k, v] = [qkv + lane, qkv + width + lane, qkv + 2 * width + lane];
      const [dQ, dK, dV] = [dRows + lane, dRows + width + lane, dRows + 2 * width + lane];
      transposeRows(v, row, count, headWidth, valuesTransposed, context);
      matmul({ at: probabilities, row: 1, column: stride }, dOut, { at: dV, row }, count, headWidth, count);
      matmul(dOut, { at: valuesTransposed, row: context }, { at: dScores, row: stride }, count, stride, headWidth);
      softmaxBackward(probabilities, dScores, stride, count, 1 / Math.sqrt(headWidth));
      matmul({ at: dScores, row: stride }, { at: k, row }, { at: dQ, row }, count, headWidth, count);
      matmul({ at: dScores, row: 1, column: stride }, { at: q, row }, { at: dK, row }, count, headWidth, count);
      probabilities += count * stride;
    }
    rotate(shape, dRows, count, 0, -1);
  }
};

/** dScores = p · (dp − Σ p·dp) · scale in place; 0 where a row sees nothing. */
const softmaxBackward = (probabilities: number, dScores: number, stride: number, count: number, scale: number): void => {
  for (let row = 0; row < count; row++) {
    const at = row * stride;
    let dot = 0;
    for (let i = 0; i <= row; i++) dot += (heap[probabilities + at + i] as number) * (heap[dScores + at + i] as number);
    for (let i = 0; i <= row; i++) {
      heap[dScores + at + i] = (heap[probabilities + at + i] as number) * ((heap[dScores + at + i] as number) - dot) * scale;
    }
    heap.fill(0, dScores + at + row + 1, dScores + at + count);
  }
};
