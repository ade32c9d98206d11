import { expect, it } from 'vitest';
import { yesOrNo } from './ask.ts';

it.each<[line: string, byDefault: boolean | null, answer: boolean | null]>([
  [' Yes\n', false, true],
  ['n', true, false],
  ['', true, true],
  ['', false, false],
  ['', null, null],
  ['maybe', true, null],
])('%j with default %s means %s', (line, byDefault, answer) => {
  expect(yesOrNo(line, byDefault)).toBe(answer);
});
