import fc from 'fast-check';
import { expect, it } from 'vitest';
import { lengthOf, lossStretches } from './stretches.ts';

it('visits every loss position once, in order, and no other', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 1), { maxLength: 40 }), (mask) => {
      const stretches = lossStretches(Uint8Array.from(mask));
      const visited: number[] = [];
      for (let s = 0; s < stretches.length; s += 2) {
        for (let p = stretches[s] as number; p < (stretches[s + 1] as number); p++) visited.push(p);
      }
      expect(visited).toEqual(mask.flatMap((isLoss, p) => (isLoss === 1 ? [p] : [])));
      expect(lengthOf(stretches)).toBe(visited.length);
    }),
  );
});
