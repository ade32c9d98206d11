import { describe, expect, test } from 'vitest';
import { parseLooseJson } from './loose-json.ts';

describe('JSON as Python writes it', () => {
  test('bare names are read as strings, strings stay as they are', () => {
    const text = '{"a": [NaN, -Infinity,Infinity, 1], "NaN": "say \\"NaN, Infinity\\"", "b": null}';
    expect(parseLooseJson(text)).toEqual({ a: ['NaN', '-Infinity', 'Infinity', 1], NaN: 'say "NaN, Infinity"', b: null });
  });

  test.each(['<html>', '{"a": NaNs}', '[NaN', ''])('what is no JSON even so: %s', (text) => {
    expect(() => parseLooseJson(text)).toThrow(SyntaxError);
  });
});
