import { describe, expect, test } from 'vitest';
import { NOT_KNOWN, RAISES, SAYS } from '../../testing/python-cases.ts';
import { compileChatTemplate } from '../chat-template.ts';
import { TemplateRefusal } from '../template.ts';

/** `json` is what one tool of the conversation says; it is `v` in the source. */
function render(source: string, json = '{}'): string {
  const template = compileChatTemplate(`{% set v = tools[0] %}${source}`, { nowMs: 0 });
  return template.render({ messages: [], tools: [{ json }], addGenerationPrompt: false });
}

describe.each(Object.entries(SAYS))('%s', (_, rows) => {
  test.each(rows.map(([source, said, json]) => ({ source, said, json })))('$source', ({ source, said, json }) => {
    expect(render(source, json)).toBe(said);
  });
});

describe.each([
  ['what Python raises at', RAISES],
  ['what the layer does not know', NOT_KNOWN],
])('%s is refused', (_, rows) => {
  test.each(rows.map(([source, json]) => ({ source, json })))('$source', ({ source, json }) => {
    expect(() => render(source, json)).toThrow(TemplateRefusal);
  });
});
