import { expect, it } from 'vitest';
import { type Comparison, MOST_APART_NATS_PER_TOKEN, selfTest } from './self-test.ts';

const seen = (again: number | null, ofLoadedWeights = false, loss: number | null = 10): Comparison => ({
  what: 'step-0002, update 1',
  ofLoadedWeights,
  seen: loss,
  again,
  weight: 100,
});
const JUST = 10 + 99 * MOST_APART_NATS_PER_TOKEN;
const FAR = 10 + 101 * MOST_APART_NATS_PER_TOKEN;

it.each<[string, Parameters<typeof selfTest>, ReturnType<typeof selfTest>]>([
  ['nothing to compare', ['loaded', []], { moments: 'loaded', differs: null }],
  ['within the tolerance', ['loaded', [seen(JUST, true), seen(JUST)]], { moments: 'loaded', differs: null }],
  ['untold losses say nothing', ['loaded', [seen(null, true), seen(5, false, null)]], { moments: 'loaded', differs: null }],
  [
    'loaded weights are others',
    ['loaded', [seen(FAR, true)]],
    { moments: 'loaded', differs: expect.stringContaining(`step-0002, update 1 is ${FAR}, and was 10`) },
  ],
  ['no number is another loss', ['loaded', [seen(Number.NaN, true)]], { moments: 'loaded', differs: expect.any(String) }],
  ['loaded weights agree, later ones do not', ['loaded', [seen(10, true), seen(FAR)]], { moments: 'cold', differs: null }],
  ['the service gave no moments', ['cold', [seen(10, true)]], { moments: 'cold', differs: null }],
  ['a fresh adapter drifts', ['fresh', [seen(10, true), seen(FAR)]], { moments: 'fresh', differs: expect.any(String) }],
])('%s', (_, [moments, comparisons], expected) => {
  expect(selfTest(moments, comparisons)).toEqual(expected);
});
