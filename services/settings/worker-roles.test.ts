import { expect, it } from 'vitest';
import { rolesIn } from './worker-roles.ts';

it.each([
  ['all', ['control', 'rollouts', 'training']],
  ['rollouts', ['rollouts']],
  [' training, control,training', ['control', 'training']],
  ['', null],
  ['control,', null],
  ['all,control', null],
  ['trainer', null],
])('%j is %j', (text, roles) => {
  expect(rolesIn(text)).toEqual(roles);
});
