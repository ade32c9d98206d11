import { causalSoftmax, rmsNorm, rotate, swiglu } from './elementwise.ts';
import { type Arena, heap as heapOfThread, matmul, roundUp4 } from './heap.ts';
import type { Resident } from './resident.ts';
import type { ModelShape } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** Adjacent rows of one sequence. `past` earlier tokens are already in its cache (0 without a cache). */
export type Segment = {
  readonly firstRow: number;
  readonly tokens: Int32Array;
  readonly past: number;
  readonly cache: KeyValueCache | null;
};

/** Keys [width, context] (transposed) and values [context, width] of one sequence, one pair a layer. */
export type KeyValueCache = { readonly keys: readonly number[]; readonly values: readonly number[] };

/** Where a layer's intermediate results lie in the heap. Training keeps them per layer; inference shares one set. */
export type LayerRows = {
  readonly input: number;
  readonly attnNormed: number;
  readonly attnInverse: number;
  readonly qkv: number;
  /** Attention probabilities: per segment and head [tokens, roundUp4(tokens)] when kept, else scratch of one head. */
  readonly probabilities: number;
  readonly attended: number;
  readonly middle: number;
  readonly mlpNormed: number;
  readonly mlpInverse: number;
  readonly gateUp: number;
  readonly activated: number;
};
export type Activations = {
  readonly layers: readonly LayerRows[];
  readonly output: number;
  readonly normed: number;
  readonly inverse: number;
  readonly keysScratch: number;
  readonly keepsAll: boolean;
};

export const probabilityFloats = (shape: ModelShape, segments: readonly Segment[]): number =>
  segments.reduce((sum, { tokens }) => sum + shape.heads * tokens.length * roundUp4(tokens.length), 0);

export const takeActivations = (
  arena: Arena,
  shape: ModelShape,
  segments: readonly Segment[],
  rows: number,
  keepsAll: boolean,
): Activations => {
  const { width, hidden, context } = shape;
  const residual = () => arena.take(rows * width);
  const first = residual();
  const layerRows = (input: number): LayerRows => ({
    input,
    attnNormed: residual(),
    attnInverse: arena.take(rows),
    qkv: arena.take(rows * 3 * width),
    probabilities: arena.take(keepsAll ? probabilityFloats(shape, segments) : context * context),
    attended: residual(),
    middle: keepsAll ? residual() : input,
    mlpNormed: residual(),
    mlpInverse: arena.take(rows),
    gateUp: arena.take(rows * 2 * hidden),
    activated: arena.take(rows * hidden),
  });
  const layers: LayerRows[] = [];
  let input = first;
  for (let layer = 0; layer < shape.layers; layer++) {
    layers.push(keepsAll || layer === 0 ? layerRows(input) : (layers[0] as LayerRows));
    if (keepsAll) input = residual();
  }
  return { layers, output: input, normed: residual(), inverse: arena.take(rows), keysScratch: arena.take(width * context), keepsAll };
};

/** Runs all layers; leaves the normed last hidden rows at `activations.normed`, ready for the head. */
export const forwardLayers = (model: Resident, segments: readonly Segment[], rows: number, acts: Activations): void => {
  const { shape, places, stored } = model;
  const { width, hidden } = shape;
  embed(model, segments, (acts.layers[0] as LayerRows).input);
  acts.layers.forEach((at, layer) => {
    const place = places.layers[layer] as (typeof places.layers)[number];
    const matrix = model.layers[layer] as (typeof model.layers)[number];
    rmsNorm(at.input, stored + place.attnNorm, at.attnNormed, at.attnInverse, rows, width);
    matmul({ at: at.attnNormed, row: width }, { at: matrix.qkv, row: 3 * width }, { at: at.qkv, row: 3 * width }, rows, 3 * width, width);
    attend(shape, segments, layer, at, acts);
    if (at.middle !== at.input) heap.copyWithin(at.middle, at.input, at.input + rows * width);
    matmul({ at: at.attended, row: width }, { at: matrix.o, row: width }, { at: at.middle, row: width }, rows, width, width, true);
    rmsNorm(at.middle, stored + place.mlpNorm, at.mlpNormed, at.mlpInverse, rows, width);
    matmul(
      { at: at.mlpNormed, row: width },
      { at: matrix.gateUp, row: 2 * hidden },
      { at: at.gateUp, row: 2 * hidden },
      rows,
      2 * hidden,
      width,
    );
    swiglu(at.gateUp, at.activated, rows, hidden);
    const next = acts.layers[layer + 1]?.input ?? acts.output;
    if (next !== at.middle) heap.copyWithin(next, at.middle, at.middle + rows * width);
    matmul({ at: at.activated, row: hidden }, { at: matrix.down, row: width }, { at: next, row: width }, rows, width, hidden, true);
  });
  rmsNorm(acts.output, stored + places.norm, acts.normed, acts.inverse, rows, width);
};

/** logits [rows, vocab] = hidden rows · embeddingᵀ. */
export const forwardHead = (model: Resident, hiddenRows: number, rows: number, logits: number): void => {
  const { width, vocab } = model.shape;
  matmul({ at: hiddenRows, row: width }, { at: model.head, row: vocab }, { at: logits, row: vocab }, rows, vocab, width);
};

const embed = (model: Resident, segments: readonly Segment[], to: number): void => {
  const { width } = model.shape;
  for (const { firstRow, tokens } of segments) {
    for (let i = 0; i < tokens.length; i++) {
      const from = model.stored + model.places.embed + (tokens[i] as number) * width;
      heap.copyWithin(to + (firstRow + i) * width, from, from + width);
    }
  }
};

const attend = (shape: ModelShape, segments: readonly Segment[], layer: number, at: LayerRows, acts: Activations): void => {
  const { width, heads, context } = shape;
  const headWidth = width / heads;
  const scale = 1 / Math.sqrt(headWidth);
  let probabilities = at.probabilities;
  for (const { firstRow, tokens, past, cache } of segments) {
    const count = tokens.length;
    const seen = past + count;
    const stride = roundUp4(seen);
    const qkv = at.qkv + firstRow * 3 * width;
    rotate(shape, qkv, count, past, 1);
    const keys = cache ? (cache.keys[layer] as number) : acts.keysScratch;
    transposeRows(qkv + width, 3 * width, count, width, keys + past, context);
    if (cache) copyRows(qkv + 2 * width, 3 * width, count, width, (cache.values[layer] as number) + past * width);
    for (let head = 0; head < heads; head++) {
      const lane = head * headWidth;
      const scores = { at: probabilities, row: stride };
      matmul({ at: qkv + lane, row: 3 * width }, { at: keys + lane * context, row: context }, scores, count, stride, headWidth);
      causalSoftmax(probabilities, stride, count, past, seen, scale);
      const values = cache ? { at: (cache.values[layer] as number) + lane, row: width } : { at: qkv + 2 * width + lane, row: 3 * width };
      matmul(scores, values, { at: at.attended + firstRow * width + lane, row: width }, count, headWidth, seen);
      if (acts.keepsAll) probabilities += count * stride;
    }
  }
};

/** to[column, row] = from[row, column]. */
export const transposeRows = (from: number, fromStride: number, rows: number, columns: number, to: number, toStride: number): void => {
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) heap[to + column * toStride + row] = heap[from + row * fromStride + column] as number;
  }
};

const copyRows = (from: number, fromStride: number, rows: number, columns: number, to: number): void => {
  for (let row = 0; row < rows; row++) heap.copyWithin(to + row * columns, from + row * fromStride, from + row * fromStride + columns);
};
