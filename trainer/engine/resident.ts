import { heap as heapOfThread, reserve } from './heap.ts';
import { type LayerPlaces, type Places, placesOf } from './shape.ts';
import type { DenseWeights, ModelShape } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/**
 * Weights in the heap, twice: as stored ([out, in], for gradients towards the input) and transposed ([in, out], for the forward
 * pass), because the matrix kernel wants the matrix it streams to have adjacent output columns.
 */
export type Resident = {
  readonly shape: ModelShape;
  readonly places: Places;
  readonly stored: number;
  readonly layers: readonly TransposedLayer[];
  /** [width, vocab]. */
  readonly head: number;
};
type TransposedLayer = { readonly qkv: number; readonly o: number; readonly gateUp: number; readonly down: number };

const SLOTS = 8;
/** Enough for twice the parameters of a 125k model; a bigger shape is refused by `load`. */
const SLOT_FLOATS = 250_000;

type Slot = { readonly at: number; owner: DenseWeights | null; view: Resident | null; lastUse: number };
const slots: Slot[] = Array.from({ length: SLOTS }, () => ({ at: reserve('weights', SLOT_FLOATS), owner: null, view: null, lastUse: 0 }));
let clock = 0;

/** The heap copy of `weights`; the least recently used copy makes room. Valid until the next call for other weights. */
export const resident = (weights: DenseWeights): Resident => {
  const found = slots.find((slot) => slot.owner === weights);
  const slot = found ?? slots.reduce((oldest, candidate) => (candidate.lastUse < oldest.lastUse ? candidate : oldest));
  slot.lastUse = ++clock;
  if (found?.view) return found.view;
  slot.owner = weights;
  slot.view = load(weights, slot.at);
  return slot.view;
};

const transpose = (from: number, rows: number, columns: number, to: number): void => {
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) heap[to + column * rows + row] = heap[from + row * columns + column] as number;
  }
};

const load = (weights: DenseWeights, at: number): Resident => {
  const { shape, values } = weights;
  const { width, hidden, vocab } = shape;
  const places = placesOf(shape);
  if (2 * places.total > SLOT_FLOATS)
    throw new Error(`engine: a model of ${places.total} parameters is too big, at most ${SLOT_FLOATS / 2}`);
  heap.set(values, at);
  let next = at + places.total;
  const transposed = (place: number, rows: number, columns: number): number => {
    const to = next;
    next += rows * columns;
    transpose(at + place, rows, columns, to);
    return to;
  };
  const layers = places.layers.map((layer: LayerPlaces) => ({
    qkv: transposed(layer.qkv, 3 * width, width),
    o: transposed(layer.o, width, width),
    gateUp: transposed(layer.gateUp, 2 * hidden, width),
    down: transposed(layer.down, width, hidden),
  }));
  return { shape, places, stored: at, layers, head: transposed(places.embed, vocab, width) };
};
