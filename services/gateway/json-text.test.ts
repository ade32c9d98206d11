import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arrayElementTexts } from './json-text.ts';

describe('the elements of a top-level array', () => {
  it.each([
    ['numbers and key order', '{"tools":[{"b":1.0,"10":1e3,"2":12345678901234567890}]}', ['{"b":1.0,"10":1e3,"2":12345678901234567890}']],
    ['white space inside', '{ "a" : 1 , "tools" : [ {"x": [1, 2]} ,\n"s" , null ] }', ['{"x": [1, 2]}', '"s"', 'null']],
    ['brackets and quotes in strings', '{"m":"\\"]}\\\\","tools":["a\\\\\\"]","{"]}', ['"a\\\\\\"]"', '"{"']],
    ['a name that also stands deeper and in texts', '{"x":{"tools":[1]},"y":"\\"tools\\":[2]","tools":[3]}', ['3']],
    ['an escaped name', '{"\\u0074ools":[4]}', ['4']],
    ['the last of two', '{"tools":[1],"tools":[2]}', ['2']],
    ['nothing, when there is none', '{"x":[1]}', []],
    ['nothing of an empty one', '{"tools":[ ]}', []],
    ['nothing of what is no array', '{"tools":null,"x":[]}', []],
  ])('keep %s', (_, json, texts) => expect(arrayElementTexts(json, 'tools')).toEqual(texts));

  it('of any object and in any spacing are the values that JSON.parse reads', () => {
    const spaced = fc.constantFrom(undefined, 1, '\t');
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()), spaced, (rest, tools, space) => {
        const json = JSON.stringify({ ...rest, tools, last: '"' }, null, space);
        const texts = arrayElementTexts(json, 'tools');
        expect(texts.map((text) => JSON.parse(text))).toEqual(JSON.parse(json).tools);
      }),
    );
  });
});
