import { expect, it } from 'vitest';
import type { BlobRef } from '../../core/ids.ts';
import type { KeptFiles } from '../../services/blobs/trial-files.ts';
import { openConsole } from '../console.ts';
import { trialsTable, trialText } from './trial-files.ts';

const { colors } = openConsole(true);
const KEPT: KeptFiles = {
  trialId: 'r-s0001-a',
  taskId: 'copy',
  who: 'student',
  files: 'r/sha256:0' as BlobRef,
  bytes: 2048,
  reward: null,
  executed: false,
  exceptionType: 'VerifierTimeoutError',
  exceptionMessage: 'too \u001b[31mslow',
  stopReason: 'done',
};
const file = (path: string, content: string) => ({ path, size: content.length, encoding: 'utf8' as const, content, leftOut: null });

it('says how trials ended, a line each', () => {
  const lines = trialsTable([KEPT, { ...KEPT, trialId: 'r-s0001-b', executed: true, reward: 0, exceptionType: null }], colors).split('\n');
  expect(lines.at(-2)).toMatch(/^r-s0001-a +copy +student +infra-failed, VerifierTimeoutError +2/);
  expect(lines.at(-1)).toMatch(/^r-s0001-b +copy +student +reward 0, done/);
});

it('of one trial shows the ends of what says why, and nothing that moves a terminal', () => {
  const log = Array.from({ length: 100 }, (_, at) => `line ${at}`).join('\n');
  const files = [
    file('trial.log', log),
    file('verifier/test-stdout.txt', 'a\u001b]0;title\u0007b\u009b2J'),
    file('agent/notes', 'of the agent'),
  ];
  const text = trialText(KEPT, { version: 1, files, leftOut: 2 }, colors);
  expect(text).toContain('r-s0001-a: copy, student, infra-failed, VerifierTimeoutError\ntoo [31mslow\n');
  expect(text).toContain('— trial.log —\nline 70\n');
  expect(text).not.toContain('line 69\n');
  expect(text).toContain('a]0;titleb2J');
  expect(text).not.toContain('of the agent');
  expect(text).toContain('2 more entries were not kept');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
  expect(text).not.toMatch(/[\u001b\u0007\u009b]/);
});
