import { expect, it } from 'vitest';
import { keptOf } from './canonical.ts';
import { jsonCall } from './families/json-call.ts';

const deep = `{"a": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
const turn = (json: string) => ({ content: '', toolCalls: [{ id: '1', name: 'f', arguments: json }] });

it('arguments that are nested without end are what the model wrote', () => {
  expect(jsonCall(`{"name": "f", "arguments": ${deep}}`)).toEqual({ name: 'f', arguments: deep });
});

it('and are the same call only when their text is', () => {
  expect(keptOf(turn(deep), { role: 'assistant', ...turn(deep) })).toBe(2);
  expect(keptOf(turn(deep), { role: 'assistant', ...turn(`${deep} `) })).toBe(0);
  expect(keptOf(turn('{}'), { role: 'assistant', ...turn(deep) })).toBe(0);
});
