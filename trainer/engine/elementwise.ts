import { exponentials, heap as heapOfThread, reserve } from './heap.ts';
import { NORM_EPS, ROPE_BASE } from './shape.ts';
import type { ModelShape } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** y = x / rms(x) · gain per row; `inverse[row]` keeps 1/rms for the backward pass. */
export const rmsNorm = (x: number, gain: number, y: number, inverse: number, rows: number, width: number): void => {
  for (let row = 0; row < rows; row++) {
    const from = x + row * width;
    const to = y + row * width;
    let squares = 0;
    for (let i = 0; i < width; i++) {
      const value = heap[from + i] as number;
      squares += value * value;
    }
    const scale = 1 / Math.sqrt(squares / width + NORM_EPS);
    heap[inverse + row] = scale;
    for (let i = 0; i < width; i++) heap[to + i] = (heap[from + i] as number) * scale * (heap[gain + i] as number);
  }
};

/** dx += the gradient through rmsNorm. `dGain` is where the gain's gradient is added, or -1. */
export const rmsNormBackward = (
  dy: number,
  x: number,
  gain: number,
  inverse: number,
  dx: number,
  dGain: number,
  rows: number,
  width: number,
): void => {
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    const scale = heap[inverse + row] as number;
    let dot = 0;
    for (let i = 0; i < width; i++) dot += (heap[dy + at + i] as number) * (heap[gain + i] as number) * (heap[x + at + i] as number);
    const pull = (dot * scale * scale * scale) / width;
    for (let i = 0; i < width; i++) {
      const value = heap[x + at + i] as number;
      const grad = heap[dy + at + i] as number;
      heap[dx + at + i] = (heap[dx + at + i] as number) + grad * (heap[gain + i] as number) * scale - value * pull;
      if (dGain >= 0) heap[dGain + i] = (heap[dGain + i] as number) + grad * value * scale;
    }
  }
};

type Rotation = { readonly cosine: Float64Array; readonly sine: Float64Array };
const rotations = new Map<string, Rotation>();

const rotationOf = ({ width, heads, context }: ModelShape): Rotation => {
  const key = `${width}/${heads}/${context}`;
  const known = rotations.get(key);
  if (known) return known;
  const half = width / heads / 2;
  const angle = (i: number) => Math.floor(i / half) * ROPE_BASE ** (-(i % half) / half);
  const cosine = Float64Array.from({ length: context * half }, (_, i) => Math.cos(angle(i)));
  const sine = Float64Array.from({ length: context * half }, (_, i) => Math.sin(angle(i)));
  rotations.set(key, { cosine, sine });
  return { cosine, sine };
};

/** Rotates q and k of adjacent positions in place (RoPE, halves as in Llama); `direction` -1 turns gradients back. */
export const rotate = (shape: ModelShape, qkv: number, rows: number, firstPosition: number, direction: 1 | -1): void => {
  const { width, heads } = shape;
  const { cosine, sine } = rotationOf(shape);
  const half = width / heads / 2;
  for (let row = 0; row < rows; row++) {
    const angles = (firstPosition + row) * half;
    // q's heads and k's heads lie side by side.
    for (let head = 0; head < 2 * heads; head++) {
      const at = qkv + row * 3 * width + head * 2 * half;
      for (let i = 0; i < half; i++) {
        const c = cosine[angles + i] as number;
        const s = (sine[angles + i] as number) * direction;
        const low = heap[at + i] as number;
        const high = heap[at + half + i] as number;
        heap[at + i] = low * c - high * s;
        heap[at + half + i] = high * c + low * s;
      }
    }
  }
};

/** Causal softmax of scores in place: row i sees columns 0..past+i, the rest up to `columns` becomes 0. */
export const causalSoftmax = (scores: number, rowStride: number, rows: number, past: number, columns: number, scale: number): void => {
  for (let row = 0; row < rows; row++) {
    const at = scores + row * rowStride;
    const seen = past + row + 1;
    let max = heap[at] as number;
    for (let i = 1; i < seen; i++) {
      const score = heap[at + i] as number;
      if (score > max) max = score;
    }
    exponentials(at, at, seen, scale, -max * scale);
    let sum = 0;
    for (let i = 0; i < seen; i++) sum += heap[at + i] as number;
    const inverse = 1 / sum;
    for (let i = 0; i < seen; i++) heap[at + i] = (heap[at + i] as number) * inverse;
    heap.fill(0, at + seen, at + columns);
  }
};

/** Scratch for one row of exponentials. */
const SCRATCH_FLOATS = 4096;
const scratch = reserve('a row of exponentials', SCRATCH_FLOATS);

/** out = silu(gate) · up; gate and up are the halves of a row. */
export const swiglu = (gateUp: number, out: number, rows: number, hidden: number): void => {
  for (let row = 0; row < rows; row++) {
    const gate = gateUp + row * 2 * hidden;
    const to = out + row * hidden;
    exponentials(gate, scratch, hidden, -1, 0);
    for (let i = 0; i < hidden; i++) {
      heap[to + i] = ((heap[gate + i] as number) / (1 + (heap[scratch + i] as number))) * (heap[gate + hidden + i] as number);
    }
  }
};

/** Replaces gate and up by their gradients, given dOut. */
export const swigluBackward = (gateUp: number, dOut: number, rows: number, hidden: number): void => {
  for (let row = 0; row < rows; row++) {
    const gate = gateUp + row * 2 * hidden;
    const from = dOut + row * hidden;
    exponentials(gate, scratch, hidden, -1, 0);
    for (let i = 0; i < hidden; i++) {
      const g = heap[gate + i] as number;
      const up = heap[gate + hidden + i] as number;
      const grad = heap[from + i] as number;
      const sigmoid = 1 / (1 + (heap[scratch + i] as number));
      heap[gate + i] = grad * up * sigmoid * (1 + g * (1 - sigmoid));
      heap[gate + hidden + i] = grad * g * sigmoid;
    }
  }
};

/** ln Σ exp over a row of logits. */
export const logSumExp = (logits: number, count: number, inverseTemperature: number): number => {
  let max = heap[logits] as number;
  for (let i = 1; i < count; i++) {
    const logit = heap[logits + i] as number;
    if (logit > max) max = logit;
  }
  exponentials(logits, scratch, count, inverseTemperature, -max * inverseTemperature);
  let sum = 0;
  for (let i = 0; i < count; i++) sum += heap[scratch + i] as number;
  return max * inverseTemperature + Math.log(sum);
};
