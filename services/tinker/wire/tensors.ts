/**
 * Typed arrays ↔ the raw little-endian bytes of the protocol.
 *
 * Two traps are handled here so that nobody meets them elsewhere:
 * - Alignment: a `bytes` field sits anywhere in a message, and `new Int32Array(buffer, offset)` throws unless the offset
 *   is a multiple of the element size. Reading therefore always copies into a fresh buffer.
 * - Aliasing: a view would keep the whole message alive and change with it (undici and Buffer reuse pooled memory).
 *   Writing on a little-endian machine returns a view of the caller's array: encode it before changing the array.
 */

const HOST_IS_LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

const INT32_MIN = -0x8000_0000;
const INT32_MAX = 0x7fff_ffff;

/** The array's bytes, little-endian. A view of `values` on little-endian machines, a swapped copy elsewhere. */
export function int32Bytes(values: Int32Array): Uint8Array<ArrayBuffer> {
  return littleEndianBytes(values, 4);
}

/** The array's bytes, little-endian. A view of `values` on little-endian machines, a swapped copy elsewhere. */
export function float32Bytes(values: Float32Array): Uint8Array<ArrayBuffer> {
  return littleEndianBytes(values, 4);
}

/** int64 bytes of 64- or 32-bit integers. The 32-bit form writes low and high words and makes no BigInt. */
export function int64Bytes(values: Int32Array | BigInt64Array): Uint8Array<ArrayBuffer> {
  if (values instanceof BigInt64Array) return littleEndianBytes(values, 8);
  const words = new Int32Array(values.length * 2);
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    words[2 * i] = value;
    words[2 * i + 1] = value >> 31;
  }
  return littleEndianBytes(words, 4);
}

/**
 * Writes the array's int64 or float32 bytes, little-endian, straight into `target`, which may begin at any byte: 64-bit and
 * float values by one copy, 32-bit integers widened on the way. `target` has `wireBytes(values)` bytes.
 */
export function writeWire(values: NumberArray, target: Uint8Array): void {
  if (!(values instanceof Int32Array)) {
    target.set(littleEndianBytes(values, values instanceof Float32Array ? 4 : 8));
    return;
  }
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    view.setInt32(8 * i, value, true);
    view.setInt32(8 * i + 4, value >> 31, true);
  }
}

/** The size of the array on the wire: integers are int64 there. */
export function wireBytes(values: NumberArray): number {
  return values.length * (values instanceof Float32Array ? 4 : 8);
}

/** @throws RangeError when the length is not a multiple of 4 */
export function readInt32(bytes: Uint8Array): Int32Array<ArrayBuffer> {
  return new Int32Array(alignedCopy(bytes, 4, 4));
}

/** @throws RangeError when the length is not a multiple of 4 */
export function readFloat32(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  return new Float32Array(alignedCopy(bytes, 4, 4));
}

/** bfloat16 is the upper half of a float32, so it widens without loss. @throws RangeError when the length is odd */
export function readBfloat16(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const halves = new Uint16Array(alignedCopy(bytes, 2, 2));
  const words = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) words[i] = (halves[i] as number) << 16;
  return new Float32Array(words.buffer);
}

/** An Int32Array when every value fits 32 bits (token ids do), else a BigInt64Array. @throws RangeError when the length is not a multiple of 8 */
export function readInt64(bytes: Uint8Array): Int32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer> {
  const words = new Int32Array(alignedCopy(bytes, 8, 4));
  const values = new Int32Array(words.length / 2);
  for (let i = 0; i < values.length; i++) {
    const low = words[2 * i] as number;
    if (words[2 * i + 1] !== low >> 31) return new BigInt64Array(alignedCopy(bytes, 8, 8));
    values[i] = low;
  }
  return values;
}

/** For indices and offsets. @throws RangeError when a value does not fit 32 bits */
export function readInt64AsInt32(bytes: Uint8Array): Int32Array<ArrayBuffer> {
  const values = readInt64(bytes);
  if (values instanceof BigInt64Array) throw new RangeError(`int64 index outside ${INT32_MIN} .. ${INT32_MAX}`);
  return values;
}

/** A tensor's elements in memory. */
export type NumberArray = Int32Array | Float32Array | BigInt64Array;

function littleEndianBytes(values: NumberArray, width: 4 | 8): Uint8Array<ArrayBuffer> {
  // Nothing here shares memory between threads, so the buffer is a plain ArrayBuffer.
  const view = new Uint8Array(values.buffer as ArrayBuffer, values.byteOffset, values.byteLength);
  return HOST_IS_LITTLE_ENDIAN ? view : swapped(view.slice(), width);
}

/** `unit` is what the length must be a multiple of; `swapWidth` the size of the words to swap on big-endian machines. */
function alignedCopy(bytes: Uint8Array, unit: 2 | 4 | 8, swapWidth: 2 | 4 | 8): ArrayBuffer {
  if (bytes.byteLength % unit !== 0) throw new RangeError(`${bytes.byteLength} bytes are no whole number of ${unit}-byte values`);
  // Not bytes.slice(): on a Buffer it returns a view instead of a copy.
  const copy = new Uint8Array(bytes.byteLength);
  copy.set(bytes);
  return (HOST_IS_LITTLE_ENDIAN ? copy : swapped(copy, swapWidth)).buffer;
}

function swapped(bytes: Uint8Array<ArrayBuffer>, width: 2 | 4 | 8): Uint8Array<ArrayBuffer> {
  for (let start = 0; start < bytes.length; start += width) bytes.subarray(start, start + width).reverse();
  return bytes;
}
