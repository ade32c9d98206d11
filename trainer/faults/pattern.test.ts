import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitsPattern } from './pattern.ts';

describe('a pattern with *', () => {
  it.each([
    ['asample', 'asample', true],
    ['asample', 'asample/x', false],
    ['*', '', true],
    ['training_runs/*', 'training_runs/a/checkpoints', true],
    ['training_runs/*', 'training_run', false],
    ['a*a', 'a', false],
    ['a*a', 'aa', true],
    ['*/checkpoints/*/ttl', 'training_runs/a/checkpoints/weights/b/ttl', true],
    ['*ab*bc', 'abc', false],
    ['a.c*', 'abc', false],
  ])('%s for %s: %s', (pattern, text, fits) => {
    expect(fitsPattern(pattern, text)).toBe(fits);
  });

  it('fits what the same regular expression fits', () => {
    const word = (letters: string, longest: number) => fc.string({ unit: fc.constantFrom(...letters), maxLength: longest });
    fc.assert(
      fc.property(word('ab*', 7), word('ab', 9), (pattern, text) => {
        expect(fitsPattern(pattern, text)).toBe(new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(text));
      }),
      { numRuns: 2000 },
    );
  });

  it('takes no longer for many stars', () => {
    const startMs = performance.now();
    expect(fitsPattern(`${'*a'.repeat(1000)}*Z*`, 'a'.repeat(16_000))).toBe(false);
    expect(performance.now() - startMs).toBeLessThan(200);
  });
});
