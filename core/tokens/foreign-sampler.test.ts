import { expect, it } from 'vitest';
import type { TrialId } from '../ids.ts';
import { refuseForeign } from './foreign-sampler.ts';
import type { Episode, Span } from './span.ts';

const span = (callIndex: number, sampler: string): Span => ({
  callIndex,
  sampler,
  prompt: Int32Array.of(1),
  sampled: Int32Array.of(2),
  logprobs: Float64Array.of(-1),
  stop: 'stop',
});
const episode = (...samplers: string[]): Episode => ({
  trial: 't-1' as TrialId,
  spans: samplers.map((name, i) => span(i, name)),
  stopReason: null,
});

it('an episode is of one model: a call sampled from other weights is named', () => {
  expect(() => refuseForeign(episode('step-0002', 'step-0002'), 'step-0002')).not.toThrow();
  expect(() => refuseForeign(episode(), 'step-0002')).not.toThrow();
  const refused = () => refuseForeign(episode('step-0002', 'step-0001'), 'step-0002');
  expect(refused).toThrow(expect.objectContaining({ code: 'foreign_sampler' }));
  expect(refused).toThrow('trial t-1, call 1: sampled from step-0001, not from step-0002');
});
