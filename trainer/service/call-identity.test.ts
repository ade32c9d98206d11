import { expect, it } from 'vitest';
import type { LossBatch } from '../engine/types.ts';
import { isSameCall, lossCall } from './call-identity.ts';

const batch: LossBatch = {
  loss: 'cross_entropy',
  datums: [
    { tokens: Int32Array.of(1, 2), targets: Int32Array.of(2, 3), weights: Float32Array.of(0, 1) },
    { tokens: Int32Array.of(4), targets: Int32Array.of(5), weights: Float32Array.of(1) },
  ],
};
const first = batch.datums[0];
const call = (changes: object, forwardOnly = false) => lossCall({ batch: { ...batch, ...changes } as LossBatch, forwardOnly });

it('is the same for the same content, however it was decoded', () => {
  const padded = new Int32Array([9, 1, 2]).subarray(1);
  expect(isSameCall(call({ datums: [{ ...first, tokens: padded }, batch.datums[1]] }), call({}))).toBe(true);
});

it.each([
  ['a token', { datums: [{ ...first, tokens: Int32Array.of(1, 3) }, batch.datums[1]] }],
  ['a weight', { datums: [{ ...first, weights: Float32Array.of(0, 0.5) }, batch.datums[1]] }],
  ['the order', { datums: [...batch.datums].reverse() }],
  ['the number of datums', { datums: [first] }],
  ['columns', { datums: [{ ...first, columns: 1 }, batch.datums[1]] }],
  ['the loss', { loss: 'importance_sampling' }],
  ['a threshold', { loss: 'ppo', clipLow: 0.8, clipHigh: 1.2 }],
])('is another one when %s differs', (_, changes) => {
  expect(isSameCall(call(changes), call({}))).toBe(false);
});

it('is another one when only the loss is wanted', () => {
  expect(isSameCall(call({}, true), call({}))).toBe(false);
});
