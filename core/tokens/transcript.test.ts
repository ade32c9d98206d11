import { expect, it } from 'vitest';
import { transcript } from './transcript.ts';

const ids = (text: string) => Int32Array.from(text, (char) => char.charCodeAt(0));
const text = (given: Int32Array) => String.fromCharCode(...given);

it('writes each token once and marks what was sampled', () => {
  const spans = [
    { prompt: ids('task\n$ '), sampled: ids('ls\n') },
    { prompt: ids('task\n$ ls\n[0] a\n$ '), sampled: ids('done\n') },
  ];
  expect(transcript(spans, text)).toBe('task\n$ ⟦ls\n⟧[0] a\n$ ⟦done\n⟧');
});

it('starts anew where a prompt does not extend the call before it', () => {
  const spans = [
    { prompt: ids('ab'), sampled: ids('c') },
    { prompt: ids('ax'), sampled: ids('y') },
  ];
  expect(transcript(spans, text)).toBe('ab⟦c⟧\n────\nax⟦y⟧');
});
