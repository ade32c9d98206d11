import { describe, expect, it } from 'vitest';
import { readSafetensors, writeSafetensors } from './safetensors.ts';

const file = {
  tensors: new Map([
    ['a', { dims: [2, 2], values: Float32Array.of(1, -0.5, Number.NaN, 3e-39) }],
    ['b', { dims: [1], values: Float32Array.of(7) }],
  ]),
  metadata: { seed: '1' },
};

describe('safetensors', () => {
  it('reads what it wrote, at any place in a buffer', () => {
    const bytes = writeSafetensors(file);
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    expect(readSafetensors(bytes, 'x')).toEqual(file);
    expect(readSafetensors(shifted.subarray(3), 'x')).toEqual(file);
  });

  it('writes the documented layout', () => {
    const bytes = writeSafetensors({ tensors: new Map([['a', { dims: [1], values: Float32Array.of(1) }]]), metadata: {} });
    const header = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  ';
    expect(Buffer.from(bytes).toString('latin1')).toBe(`${String.fromCharCode(header.length)}${'\0'.repeat(7)}${header}\0\0\x80?`);
  });

  const withHeader = (header: string) => {
    const bytes = Buffer.alloc(8 + header.length);
    bytes.writeBigUInt64LE(BigInt(header.length));
    bytes.write(header, 8);
    return new Uint8Array(bytes);
  };
  it.each([
    ['a short file', new Uint8Array(4), /f: not a safetensors file/],
    ['a header longer than the file', writeSafetensors(file).subarray(0, 20), /f: not a safetensors file, its header/],
    ['a cut tensor', writeSafetensors(file).subarray(0, -1), /f: tensor b ends behind the end/],
    ['no JSON', withHeader('nope'), /f: not a safetensors file, its header is not JSON/],
    ['another type', withHeader('{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'), /only F32/],
    ['a wrong size', withHeader('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}'), /f: tensor a has 4 bytes for shape \[2\]/],
  ])('refuses %s', (_, bytes, message) => {
    expect(() => readSafetensors(bytes, 'f')).toThrow(message);
  });
});
