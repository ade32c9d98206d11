import type { KeyValueCache } from './forward.ts';
import { heap as heapOfThread, reserve } from './heap.ts';
import type { DenseWeights, ModelShape } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** Keys and values of one sequence: what `tokens` left in the cache under `weights`. */
export type CachedSequence = {
  readonly cache: KeyValueCache;
  owner: DenseWeights | null;
  tokens: number[];
  inUse: boolean;
  lastUse: number;
};

/**
 * A fixed number of sequence caches. A new sequence takes over the cache of the finished one that it continues, copies the part
 * that it shares with another, or starts empty in the least recently used.
 */
export class KeyValuePool {
  readonly #shape: ModelShape;
  readonly #sequences: CachedSequence[];
  #clock = 0;

  constructor(shape: ModelShape, count: number) {
    this.#shape = shape;
    const floats = shape.width * shape.context;
    const place = (what: string) => Array.from({ length: shape.layers }, () => reserve(what, floats));
    this.#sequences = Array.from({ length: count }, () => ({
      cache: { keys: place('cached keys'), values: place('cached values') },
      owner: null,
      tokens: [],
      inUse: false,
      lastUse: 0,
    }));
  }

  /** True if a sequence can be opened now. */
  get hasRoom(): boolean {
    return this.#sequences.some((sequence) => !sequence.inUse);
  }

  /**
   * A sequence whose `tokens` are a prefix of the prompt, at least its last token missing (its logits are wanted).
   * Returns it with `tokens` cut to that prefix; `reuse` false starts from nothing.
   */
  open(weights: DenseWeights, prompt: Int32Array, reuse: boolean): CachedSequence {
    const best = reuse ? this.#longestShared(weights, prompt) : { sequence: null, shared: 0 };
    const takesOver = best.sequence !== null && !best.sequence.inUse && best.shared === best.sequence.tokens.length;
    const target = takesOver && best.sequence ? best.sequence : this.#leastRecentlyUsed(best.sequence);
    if (best.sequence && target !== best.sequence) this.#copy(best.sequence, target, best.shared);
    target.owner = weights;
    target.tokens = Array.from(prompt.subarray(0, best.shared));
    target.inUse = true;
    target.lastUse = ++this.#clock;
    return target;
  }

  /** Keeps what the sequence holds for prompts that begin alike. */
  close(sequence: CachedSequence): void {
    sequence.inUse = false;
    sequence.lastUse = ++this.#clock;
  }

  #longestShared(weights: DenseWeights, prompt: Int32Array): { sequence: CachedSequence | null; shared: number } {
    let sequence: CachedSequence | null = null;
    let longest = 0;
    for (const candidate of this.#sequences) {
      if (candidate.owner !== weights) continue;
      const limit = Math.min(candidate.tokens.length, prompt.length - 1);
      let shared = 0;
      while (shared < limit && candidate.tokens[shared] === prompt[shared]) shared++;
      if (shared > longest) [sequence, longest] = [candidate, shared];
    }
    return { sequence, shared: longest };
  }

  #leastRecentlyUsed(except: CachedSequence | null): CachedSequence {
    const free = this.#sequences.filter((sequence) => !sequence.inUse && sequence !== except);
    const candidates = free.length > 0 ? free : this.#sequences.filter((sequence) => !sequence.inUse);
    const [first, ...others] = candidates;
    if (!first) throw new Error('engine: every sequence cache is in use; ask hasRoom first');
    return others.reduce((oldest, candidate) => (candidate.lastUse < oldest.lastUse ? candidate : oldest), first);
  }

  #copy(from: CachedSequence, to: CachedSequence, tokens: number): void {
    const { width, context, layers } = this.#shape;
    for (let layer = 0; layer < layers; layer++) {
      const [keysFrom, keysTo] = [from.cache.keys[layer] as number, to.cache.keys[layer] as number];
      for (let i = 0; i < width; i++) heap.copyWithin(keysTo + i * context, keysFrom + i * context, keysFrom + i * context + tokens);
      const [valuesFrom, valuesTo] = [from.cache.values[layer] as number, to.cache.values[layer] as number];
      heap.copyWithin(valuesTo, valuesFrom, valuesFrom + tokens * width);
    }
  }
}
