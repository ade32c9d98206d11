import { moduleBytes } from './wasm/assembler.ts';
import { type Exponential, exponentialFunction } from './wasm/exponential.ts';
import { type Matmul, matmulFunction } from './wasm/matmul.ts';

const MEBIBYTE = 1 << 20;
const HEAP_BYTES = 128 * MEBIBYTE;
const PAGES = HEAP_BYTES / 65536;

/**
 * The thread's one WebAssembly memory. Its size is fixed, because growing it would detach every view made before;
 * pages that were never touched cost nothing.
 */
const memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES });
/** The whole heap as floats. Places in it are indices into this array ("at"), not bytes. */
export const heap = new Float32Array(memory.buffer);

const instance = new WebAssembly.Instance(new WebAssembly.Module(moduleBytes([matmulFunction, exponentialFunction], PAGES)), {
  env: { memory },
});
const matmulBytes = instance.exports.matmul as Matmul;
const exponentialBytes = instance.exports.exponential as Exponential;

/** Part of a matrix in the heap: where it starts and how many floats lie between rows (and columns, when it is read transposed). */
export type Block = { readonly at: number; readonly row: number; readonly column?: number };

/** C = A·B, or C += A·B. `a` is m × k, `b` k × n, `c` m × n; n is a multiple of 4. `b` and `c` have adjacent columns. */
export const matmul = (a: Block, b: Block, c: Block, m: number, n: number, k: number, accumulate = false): void =>
  matmulBytes(a.at * 4, a.row * 4, (a.column ?? 1) * 4, b.at * 4, b.row * 4, c.at * 4, c.row * 4, m, n, k, accumulate ? 1 : 0);

/** to[i] = exp(from[i] · scale + shift) to about 1e-7 of itself, for `count` rounded up to 4 numbers; `from` and `to` may be one place. */
export const exponentials = (from: number, to: number, count: number, scale: number, shift: number): void => {
  heap[exponentialTerms] = scale;
  heap[exponentialTerms + 1] = shift;
  exponentialBytes(from * 4, to * 4, count, exponentialTerms * 4);
};

export const roundUp4 = (count: number): number => (count + 3) & ~3;

/** A region of the heap that hands out space in order and takes it back all at once. */
export class Arena {
  readonly #name: string;
  readonly #start: number;
  readonly #end: number;
  #next: number;

  constructor(name: string, floats: number) {
    this.#name = name;
    this.#start = reserve(name, floats);
    this.#end = this.#start + floats;
    this.#next = this.#start;
  }

  /** Space for `floats` numbers, with whatever was there before in it. */
  take(floats: number): number {
    const at = this.#next;
    this.#next += roundUp4(floats);
    if (this.#next > this.#end) throw new Error(`engine: arena ${this.#name} of ${this.#end - this.#start} floats is full`);
    return at;
  }

  reset(): void {
    this.#next = this.#start;
  }
}

let reserved = 0;

/** Space that is never given back. */
export const reserve = (name: string, floats: number): number => {
  const at = reserved;
  reserved += roundUp4(floats);
  if (reserved > heap.length) throw new Error(`engine: no heap left for ${name} (${floats} floats)`);
  return at;
};

const exponentialTerms = reserve('terms of exponentials', 2);
