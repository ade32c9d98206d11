import { describe, expect, it } from 'vitest';
import { cutAtStop, saidBefore, stopsOf } from './stops.ts';
import { byteIds, byteRenderer, wordId } from './testing/byte-renderer.ts';

const renderer = byteRenderer();
const { vocabulary } = renderer;
const ids = (...parts: (string | number)[]) =>
  Int32Array.from(parts.flatMap((part) => (typeof part === 'number' ? part : [...byteIds(part)])));

describe('stop strings', () => {
  it('of one token are given to the sampler, all are looked for', async () => {
    expect(await stopsOf([';', 'ab', 'END', 'é'], renderer)).toEqual({ texts: [';', 'ab', 'END', 'é'], ids: [59, wordId('END')] });
  });

  it.each<[string, Int32Array, string[], object | null]>([
    ['are nowhere', ids('abc'), ['x'], null],
    ['are over several tokens', ids('a', 'stop', 'b'), ['stop'], { text: 'stop', kept: 5, shown: 1, isInside: false }],
    ['are one token', ids('a;'), [';'], { text: ';', kept: 2, shown: 1, isInside: false }],
    ['begin inside a token', ids('f', wordId('();'), 'x'), [';'], { text: ';', kept: 2, shown: 1, isInside: true }],
    ['end inside a token', ids('a', wordId('END.'), 'x'), ['aEND'], { text: 'aEND', kept: 2, shown: 0, isInside: false }],
    ['come several times', ids('a;b;'), [';'], { text: ';', kept: 2, shown: 1, isInside: false }],
    ['are several: the one that ends first', ids('abcd'), ['cd', 'bc'], { text: 'bc', kept: 3, shown: 1, isInside: false }],
    ['are several: the longer of two that end together', ids('abc'), ['c', 'bc'], { text: 'bc', kept: 3, shown: 1, isInside: false }],
    ['are half a surrogate pair, which is U+FFFD', ids('a\ufffdb'), ['\ud800'], { text: '\ud800', kept: 4, shown: 1, isInside: false }],
    ['are part of no character', ids('\u00e9'), ['\u0029'], null],
  ])('that %s', (_, sampled, texts, cut) => expect(cutAtStop(sampled, texts, vocabulary)).toEqual(cut));

  it.each([
    ['text', ids('f', wordId('();')), { content: 'f()' }],
    ['reasoning', ids('<think>f', wordId('();')), { content: '', reasoning: 'f()' }],
    ['text after reasoning', ids('<think>a</think>f', wordId('();')), { content: 'f()', reasoning: 'a' }],
  ])('inside a token leave what the token says before them, in %s', async (_, kept, said) => {
    const cut = cutAtStop(kept, [';'], vocabulary);
    expect(cut && (await saidBefore(cut, kept, renderer, { prompt: ids(), tools: [] }))).toEqual(said);
  });
});
