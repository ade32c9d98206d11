import type { Span } from './span.ts';

/** What stands around sampled text in a transcript; neither occurs in the text of a terminal. */
export const SAMPLED_MARKS = ['⟦', '⟧'] as const;

/**
 * An episode as text, call by call: new prompt text as it is, sampled text between marks. A prompt that does not extend the call
 * before it starts on a new line, after a rule. `text` turns ids into text.
 */
export function transcript(spans: readonly Pick<Span, 'prompt' | 'sampled'>[], text: (ids: Int32Array) => string): string {
  const [open, close] = SAMPLED_MARKS;
  let said = new Int32Array(0);
  let written = '';
  for (const { prompt, sampled } of spans) {
    const extendsLast = prompt.length >= said.length && said.every((id, at) => prompt[at] === id);
    written += extendsLast ? text(prompt.subarray(said.length)) : `\n────\n${text(prompt)}`;
    written += `${open}${text(sampled)}${close}`;
    said = Int32Array.from([...prompt, ...sampled]);
  }
  return written;
}
