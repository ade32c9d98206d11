import { expect, it } from 'vitest';
import { WireRequest } from './wire-schema.ts';

it.each([
  ['messages', (list: unknown[]) => ({ messages: list })],
  ['text parts', (list: unknown[]) => ({ messages: [{ role: 'user', content: list }] })],
  ['tools', (list: unknown[]) => ({ messages: [], tools: list })],
  ['stop strings', (list: unknown[]) => ({ messages: [], stop: list })],
])('of a list of bad %s only the first is told, so that a long one costs nothing', (_, body) => {
  const { error } = WireRequest.safeParse(body(new Array(1_000).fill(0)));
  expect(JSON.stringify(error?.issues).length).toBeLessThan(2_000);
});
