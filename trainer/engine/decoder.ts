import { checkRequest } from './decode-request.ts';
import { forwardHead, forwardLayers, type Segment, takeActivations } from './forward.ts';
import { Arena, heap as heapOfThread } from './heap.ts';
import { type CachedSequence, KeyValuePool } from './kv-pool.ts';
import { NO_SCORES, type PromptScores, scorePrompt, unscored } from './prompt-scores.ts';
import { uniformStream } from './random.ts';
import { resident } from './resident.ts';
import { drawToken } from './sampling.ts';
import { TINY_SHAPE } from './shape.ts';
import { emptyTopk, selectTop } from './topk.ts';
import type { DecodeRequest, DecodeResult, DenseWeights, ModelShape, TopkLogprobs } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** Rows (new prompt tokens and one token of each running sequence) that go through the model at once. */
const MAX_ROWS = 512;
const arena = new Arena('decoding', 1 << 20);

type Running = {
  readonly id: number;
  readonly request: DecodeRequest;
  readonly sequence: CachedSequence;
  readonly uniform: () => number;
  readonly cacheHits: number;
  /** Null: the prompt is not to be scored. */
  readonly scores: PromptScores | null;
  readonly tokens: number[];
  readonly logprobs: number[];
  /** Room for maxTokens rows; null: not wanted. */
  readonly topk: TopkLogprobs | null;
  /** Tokens whose logits come next: what is left of the prompt, later the token just sampled. */
  pending: Int32Array;
};

/**
 * Continuous batching: each `step` prefills waiting prompts and decodes one token of every running sequence together.
 * A sequence's numbers do not depend on what else is in the batch, nor on what came from the prefix cache.
 */
export class Decoder {
  readonly #pool: KeyValuePool;
  readonly #shape: ModelShape;
  #waiting: { readonly id: number; readonly request: DecodeRequest }[] = [];
  #running: Running[] = [];
  #nextId = 1;

  /** `cachedSequences` bounds both the sequences decoded at once and those kept for prefix reuse (about 0.2 MB each). */
  constructor({ cachedSequences, shape = TINY_SHAPE }: { readonly cachedSequences: number; readonly shape?: ModelShape }) {
    this.#shape = shape;
    this.#pool = new KeyValuePool(shape, cachedSequences);
  }

  /** True while `step` has something to do. */
  get isBusy(): boolean {
    return this.#waiting.length + this.#running.length > 0;
  }

  /** Queues a request and returns the id under which `step` will report it. Throws a RangeError that names the bad field. */
  submit(request: DecodeRequest): number {
    checkRequest(this.#shape, request);
    const id = this.#nextId++;
    this.#waiting.push({ id, request });
    return id;
  }

  /** Forgets a request; nothing is reported for it. */
  cancel(id: number): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting.id !== id);
    for (const running of this.#running) if (running.id === id) this.#pool.close(running.sequence);
    this.#running = this.#running.filter((running) => running.id !== id);
  }

  /** One round for one set of weights; returns the requests that ended in it. */
  step(): { readonly id: number; readonly result: DecodeResult }[] {
    this.#admit();
    const batch = this.#nextBatch();
    if (batch.length === 0) return [];
    this.#forward((batch[0] as Running).request.weights, batch);
    const ended = batch.filter(hasEnded);
    for (const { sequence } of ended) this.#pool.close(sequence);
    const others = this.#running.filter((running) => !batch.includes(running));
    // Those that just had a turn go to the back, so that different weights and long prompts take turns.
    this.#running = [...others, ...batch.filter((running) => !ended.includes(running))];
    return ended.map((running) => ({ id: running.id, result: resultOf(running) }));
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#pool.hasRoom) {
      const { id, request } = this.#waiting.shift() as { id: number; request: DecodeRequest };
      const { weights, prompt, topkSampledLogprobs = 0 } = request;
      const scores = unscored(request);
      const sequence = this.#pool.open(weights, prompt, scores === null);
      this.#running.push({
        id,
        request,
        sequence,
        uniform: uniformStream(request.seed),
        cacheHits: sequence.tokens.length,
        scores,
        tokens: [],
        logprobs: [],
        topk: topkSampledLogprobs > 0 ? emptyTopk(request.maxTokens, topkSampledLogprobs) : null,
        pending: prompt.slice(sequence.tokens.length),
      });
    }
  }

  #nextBatch(): Running[] {
    const weights = this.#running[0]?.request.weights;
    const batch: Running[] = [];
    let rows = 0;
    for (const running of this.#running) {
      if (running.request.weights !== weights) continue;
      rows += running.pending.length;
      if (rows > MAX_ROWS && batch.length > 0) break;
      batch.push(running);
    }
    return batch;
  }

  #forward(weights: DenseWeights, batch: readonly Running[]): void {
    const { width, vocab } = this.#shape;
    const model = resident(weights);
    arena.reset();
    let rows = 0;
    const segments = batch.map(({ pending, sequence }): Segment => {
      const segment = { firstRow: rows, tokens: pending, past: sequence.tokens.length, cache: sequence.cache };
      rows += pending.length;
      return segment;
    });
    const acts = takeActivations(arena, this.#shape, segments, rows, false);
    forwardLayers(model, segments, rows, acts);
    // Only the last row of a sequence needs logits, unless the prompt is scored: then all do, for all of the batch.
    const wantsAll = batch.some(({ scores, tokens }) => scores !== null && tokens.length === 0);
    const lastRows = segments.map(({ firstRow, tokens }) => firstRow + tokens.length - 1);
    if (!wantsAll) {
      lastRows.forEach((row, i) => {
        heap.copyWithin(acts.normed + i * width, acts.normed + row * width, acts.normed + (row + 1) * width);
      });
    }
    const logits = arena.take((wantsAll ? rows : batch.length) * vocab);
    forwardHead(model, acts.normed, wantsAll ? rows : batch.length, logits);
    batch.forEach((running, i) => {
      const { firstRow } = segments[i] as Segment;
      const { scores, request, tokens } = running;
      if (scores !== null && tokens.length === 0) scorePrompt(scores, request, logits + firstRow * vocab, vocab);
      for (const token of running.pending) running.sequence.tokens.push(token);
      drawNext(running, logits + (wantsAll ? (lastRows[i] as number) : i) * vocab, vocab);
    });
  }
}

const drawNext = (running: Running, logits: number, vocab: number): void => {
  const { request, topk, tokens, logprobs, uniform } = running;
  if (request.maxTokens === 0) return;
  const { token, logprob, sharpness, normalizer } = drawToken(logits, vocab, request, uniform);
  if (topk !== null) selectTop(topk, tokens.length, logits, vocab, sharpness, normalizer);
  tokens.push(token);
  logprobs.push(logprob);
  running.pending = Int32Array.of(token);
};

const stopped = ({ request: { stopTokens, stopSequences = [] }, tokens }: Running): boolean =>
  stopTokens.includes(tokens.at(-1) ?? -1) ||
  stopSequences.some((stop) => stop.length <= tokens.length && stop.every((token, i) => tokens[tokens.length - stop.length + i] === token));
const hasEnded = (running: Running): boolean => stopped(running) || running.tokens.length >= running.request.maxTokens;

const resultOf = (running: Running): DecodeResult => ({
  tokens: Int32Array.from(running.tokens),
  logprobs: Float32Array.from(running.logprobs),
  stop: stopped(running) ? 'stop' : 'length',
  promptCacheHitTokens: running.cacheHits,
  topkSampledLogprobs: running.topk && firstRows(running.topk, running.tokens.length),
  ...(running.scores ?? NO_SCORES),
});

const firstRows = ({ k, tokenIds, logprobs }: TopkLogprobs, rows: number): TopkLogprobs => ({
  k,
  tokenIds: tokenIds.slice(0, rows * k),
  logprobs: logprobs.slice(0, rows * k),
});
