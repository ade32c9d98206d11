import {
  add,
  type Code,
  constant,
  type FunctionSource,
  get,
  increase,
  lessThan,
  set,
  subtract,
  vectorAdd,
  vectorLoad,
  vectorMax,
  vectorMin,
  vectorMultiply,
  vectorNearest,
  vectorOf,
  vectorPowerOfTwo,
  vectorSplat,
  vectorStore,
  vectorSubtract,
  whileLoop,
} from './assembler.ts';

/** to[i] = exp(from[i] · terms[0] + terms[1]), four at a time until `count` is reached or passed. Addresses are in bytes. */
export type Exponential = (from: number, to: number, count: number, terms: number) => void;

const FROM = 0,
  TO = 1,
  COUNT = 2,
  TERMS = 3;
const SCALE = 4,
  SHIFT = 5,
  X = 6,
  POWER = 7,
  REST = 8;

/** Below, the result is about 1e-38 instead of less; above, about 1.6e38 instead of more. */
const LOWEST = -87.3;
const HIGHEST = 88;
/** ln 2 in two parts, so that x − n·ln 2 loses nothing; polynomial of e^r on |r| ≤ ln 2 / 2 (Cephes, expf). */
const LN2_HIGH = 0.693359375;
const LN2_LOW = -2.1219444e-4;
const POLYNOMIAL = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1];

const horner = (coefficients: readonly number[]): Code =>
  coefficients
    .slice(1)
    .reduce<Code>(
      (sum, coefficient) => vectorAdd(vectorMultiply(sum, get(REST)), vectorOf(coefficient)),
      vectorOf(coefficients[0] as number),
    );

export const exponentialFunction: FunctionSource = {
  name: 'exponential',
  parameters: 4,
  integers: 0,
  vectors: 5,
  body: [
    set(SCALE, vectorSplat(get(TERMS))),
    set(SHIFT, vectorSplat(add(get(TERMS), constant(4)))),
    whileLoop(lessThan(constant(0), get(COUNT)), [
      set(X, vectorAdd(vectorMultiply(vectorLoad(get(FROM)), get(SCALE)), get(SHIFT))),
      set(X, vectorMin(vectorMax(get(X), vectorOf(LOWEST)), vectorOf(HIGHEST))),
      set(POWER, vectorNearest(vectorMultiply(get(X), vectorOf(Math.LOG2E)))),
      set(REST, vectorSubtract(get(X), vectorMultiply(get(POWER), vectorOf(LN2_HIGH)))),
      set(REST, vectorSubtract(get(REST), vectorMultiply(get(POWER), vectorOf(LN2_LOW)))),
      set(X, vectorAdd(vectorMultiply(horner(POLYNOMIAL), vectorMultiply(get(REST), get(REST))), vectorAdd(get(REST), vectorOf(1)))),
      vectorStore(get(TO), vectorMultiply(get(X), vectorPowerOfTwo(get(POWER)))),
      increase(FROM, constant(16)),
      increase(TO, constant(16)),
      set(COUNT, subtract(get(COUNT), constant(4))),
    ]),
  ],
};
