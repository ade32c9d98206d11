import { expect, it } from 'vitest';
import { parseTaskIds } from './task-ids.ts';

it('keeps ids as they stand, in their order', () => {
  expect(parseTaskIds('["b", "a ", "a", " ", "org/é"]')).toEqual({ ids: ['b', 'a ', 'a', ' ', 'org/é'], problem: null });
});

it.each([
  ['unreadable', '', /not JSON/],
  ['unreadable', '\uFEFF["a"]', /not JSON/],
  ['shape', '{"a": 1}', /must be a JSON array/],
  ['shape', '["a", 7]', /entry 1: /],
  ['invalid', '[]', /names no task/],
  ['invalid', '["a", ""]', /entry 1: /],
  ['invalid', '["a\\u0000b"]', /without NUL/],
  ['invalid', '["a\\ud800"]', /broken characters/],
  ['invalid', '["a","b","c","d","a","b","c","d"]', /names a, b, c and 1 more more than once/],
])('%s: %s', (kind, text, message) => {
  expect(parseTaskIds(text)).toEqual({ ids: [], problem: { kind, message: expect.stringMatching(message) } });
});
