import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenLine } from './token-line.ts';

const textOf = ({ json }: TokenLine) => Buffer.from(json).toString();
const ids = (...values: number[]) => Int32Array.from(values);

describe('a line of tokens', () => {
  it('shares its memory with what is appended to it', () => {
    const prompt = TokenLine.of(ids(1, 2));
    const turn = prompt.with(ids(3)).with(ids(4, 5));
    expect(turn.ids).toEqual(ids(1, 2, 3, 4, 5));
    expect(turn.ids.buffer).toBe(prompt.ids.buffer);
  });

  it('is copied once by a second, different continuation, and not by the same one again', () => {
    const turn = TokenLine.of(ids(1, 2));
    const first = turn.with(ids(3));
    const other = turn.with(ids(4));
    expect([...first.ids, ...other.ids]).toEqual([1, 2, 3, 1, 2, 4]);
    expect(other.ids.buffer).not.toBe(first.ids.buffer);
    expect(other.with(ids(5)).ids.buffer).toBe(other.ids.buffer);
    expect(turn.with(ids(3)).ids.buffer).toBe(first.ids.buffer);
  });

  it('of 200 turns up to 64,000 ids holds about what the last one has, not the sum', () => {
    const buffers = new Set<ArrayBufferLike>();
    let line = TokenLine.of(new Int32Array(320).fill(7));
    for (let turn = 1; turn < 200; turn++) {
      line = line.with(new Int32Array(320).fill(turn));
      buffers.add(line.ids.buffer);
    }
    expect(line.length).toBe(64_000);
    const heldBytes = [...buffers].reduce((sum, buffer) => sum + buffer.byteLength, 0);
    expect(heldBytes).toBeLessThan(4 * 64_000 * 4);
  });

  it('is what was appended, as ids and as JSON, whatever else is made of the same lines in between', () => {
    const step = fc.record({ from: fc.nat(), more: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 600 }), read: fc.nat() });
    fc.assert(
      fc.property(fc.array(fc.nat(9), { maxLength: 3 }), fc.array(step, { maxLength: 12 }), (start, steps) => {
        const lines = [{ line: TokenLine.of(ids(...start)), expected: start }];
        for (const { from, more, read } of steps) {
          const base = lines[from % lines.length] as (typeof lines)[0];
          lines.push({ line: base.line.with(ids(...more)), expected: [...base.expected, ...more] });
          const early = lines[read % lines.length] as (typeof lines)[0];
          expect(textOf(early.line)).toBe(early.expected.join(','));
        }
        for (const { line, expected } of lines) {
          expect([...line.ids]).toEqual(expected);
          expect(JSON.parse(`[${textOf(line)}]`)).toEqual(expected);
        }
      }),
    );
  });
});
