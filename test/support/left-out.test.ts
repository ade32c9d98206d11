import { expect, test } from 'vitest';
import { leftOut } from './left-out.ts';

test('a machine that lacks something is told which test files leave tests out', () => {
  const [tmux, ...more] = leftOut([{ word: 'TMUX_IS_HERE', lacks: 'tmux', remedy: 'Install it.' }]);
  expect(more).toEqual([]);
  expect(tmux).toMatch(/^LEFT OUT on this machine, for want of tmux: tests in .*test\/harbor\/terminus\.test\.ts.*\. Install it\.$/);
  expect(leftOut([])).toEqual([]);
});
