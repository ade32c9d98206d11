/** Just enough of the WebAssembly binary format to write small SIMD loops by hand. A piece of code is a list of bytes. */
export type Code = readonly (number | Code)[];

const flatten = (code: Code): number[] => (code as unknown as (number | number[])[]).flat(Number.POSITIVE_INFINITY as 1) as number[];

export const unsigned = (value: number): Code => (value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)]);
const signed = (value: number): Code => (value >= -64 && value < 64 ? [value & 127] : [(value & 127) | 128, ...signed(value >> 7)]);
const list = (items: readonly Code[]): Code => [unsigned(items.length), items];
const sized = (code: Code): Code => {
  const bytes = flatten(code);
  return [unsigned(bytes.length), bytes];
};
const text = (value: string): Code => sized([...new TextEncoder().encode(value)]);
const section = (id: number, code: Code): Code => [id, sized(code)];

const I32 = 0x7f;
const V128 = 0x7b;
const simd = (opcode: number, ...immediate: Code): Code => [0xfd, unsigned(opcode), immediate];

export const get = (local: number): Code => [0x20, unsigned(local)];
export const set = (local: number, value: Code): Code => [value, 0x21, unsigned(local)];
export const constant = (value: number): Code => [0x41, signed(value)];
export const add = (left: Code, right: Code): Code => [left, right, 0x6a];
export const subtract = (left: Code, right: Code): Code => [left, right, 0x6b];
export const multiply = (left: Code, right: Code): Code => [left, right, 0x6c];
export const shiftLeft = (value: Code, bits: number): Code => [value, constant(bits), 0x74];
export const lessThan = (left: Code, right: Code): Code => [left, right, 0x48];
export const increase = (local: number, by: Code): Code => set(local, add(get(local), by));
export const ifElse = (condition: Code, then: Code, otherwise: Code): Code => [condition, 0x04, 0x40, then, 0x05, otherwise, 0x0b];
/** Repeats `body` while `condition` holds; tested before each round. */
export const whileLoop = (condition: Code, body: Code): Code => [
  0x02,
  0x40,
  0x03,
  0x40,
  condition,
  0x45,
  0x0d,
  1,
  body,
  0x0c,
  0,
  0x0b,
  0x0b,
];

export const vectorZero: Code = simd(0x0c, ...new Array<number>(16).fill(0));
export const vectorLoad = (address: Code, offset = 0): Code => [address, simd(0x00, 2, unsigned(offset))];
export const vectorSplat = (address: Code, offset = 0): Code => [address, simd(0x09, 2, unsigned(offset))];
export const vectorStore = (address: Code, value: Code, offset = 0): Code => [address, value, simd(0x0b, 2, unsigned(offset))];
export const vectorAdd = (left: Code, right: Code): Code => [left, right, simd(0xe4)];
export const vectorSubtract = (left: Code, right: Code): Code => [left, right, simd(0xe5)];
export const vectorMultiply = (left: Code, right: Code): Code => [left, right, simd(0xe6)];
export const vectorMin = (left: Code, right: Code): Code => [left, right, simd(0xe8)];
export const vectorMax = (left: Code, right: Code): Code => [left, right, simd(0xe9)];
/** Nearest whole number, ties to even. */
export const vectorNearest = (value: Code): Code => [value, simd(0x6a)];
/** 2^value for four whole numbers within the normal exponents of a float32: the exponent field is written directly. */
export const vectorPowerOfTwo = (value: Code): Code => {
  const asIntegers: Code = [value, simd(0xf8)];
  const bias = new Array<Code>(4).fill([127, 0, 0, 0]);
  return [asIntegers, simd(0x0c, ...bias), simd(0xae), constant(23), simd(0xab)];
};
/** The same float32 four times. */
export const vectorOf = (value: number): Code => {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setFloat32(0, value, true);
  return simd(0x0c, ...new Array<Code>(4).fill([...bytes]));
};

export type FunctionSource = {
  readonly name: string;
  readonly parameters: number;
  readonly integers: number;
  readonly vectors: number;
  readonly body: Code;
};

/** A module of exported functions over i32 parameters without results; it imports its memory as `env.memory`. */
export const moduleBytes = (functions: readonly FunctionSource[], memoryPages: number): Uint8Array<ArrayBuffer> => {
  const types = functions.map((f): Code => [0x60, list(new Array(f.parameters).fill([I32])), list([])]);
  const bodies = functions.map((f) =>
    sized([
      list([
        [unsigned(f.integers), I32],
        [unsigned(f.vectors), V128],
      ]),
      f.body,
      0x0b,
    ]),
  );
  return new Uint8Array(
    flatten([
      [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
      section(1, list(types)),
      section(2, list([[text('env'), text('memory'), 0x02, 0x01, unsigned(memoryPages), unsigned(memoryPages)]])),
      section(3, list(functions.map((_, index) => unsigned(index)))),
      section(7, list(functions.map((f, index): Code => [text(f.name), 0x00, unsigned(index)]))),
      section(10, list(bodies)),
    ]),
  );
};
