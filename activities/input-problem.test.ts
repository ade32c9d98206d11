import { expect, it } from 'vitest';
import { asInputProblem, InputProblem } from './input-problem.ts';

const fileError = (code: string) => Object.assign(new Error(`${code}: said the system`), { code });

it.each([
  ['ENOENT', 'taskIds: there is no file x below the project root'],
  ['EACCES', 'taskIds: file x cannot be used: EACCES: said the system'],
  ['EISDIR', 'taskIds: file x cannot be used: EISDIR: said the system'],
])('%s is about the path: trying again does not help', (code, message) => {
  const problem = asInputProblem(fileError(code), 'taskIds', 'file x');
  expect(problem).toBeInstanceOf(InputProblem);
  expect(problem).toMatchObject({ field: 'taskIds', message });
});

it.each([fileError('EMFILE'), fileError('EIO'), new Error('a mistake of ours')])('%o may pass: it stays what it is', (error) => {
  expect(asInputProblem(error, 'taskIds', 'file x')).toBe(error);
});

it('keeps the field that was named first', () => {
  const first = new InputProblem('config', 'is wrong');
  expect(asInputProblem(first, 'taskIds', 'x')).toBe(first);
});
