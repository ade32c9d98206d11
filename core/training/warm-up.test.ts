import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BlobRef, TrialId } from '../ids.ts';
import type { Trajectory } from '../run/warm-up.ts';
import type { Span } from '../tokens/span.ts';
import { drawWarmupBatch, keptTrajectories, warmupDatums } from './warm-up.ts';

const trajectory = (name: string, more: Partial<Trajectory> = {}): Trajectory => ({
  trialId: name as TrialId,
  taskId: name,
  passed: true,
  executed: true,
  sampledTokens: 1,
  spans: `sha256:${name}` as BlobRef,
  ...more,
});
const all = [
  trajectory('passed'),
  trajectory('failed', { passed: false }),
  trajectory('infra', { executed: false, passed: false }),
  trajectory('silent', { spans: null }),
];

it.each([
  ['passed', ['passed']],
  ['all', ['passed', 'failed']],
] as const)('keep = %s keeps %j', (keep, kept) => expect(keptTrajectories(all, keep).map(({ taskId }) => taskId)).toEqual(kept));

describe('warmupDatums', () => {
  const span = (prompt: number[], sampled: number[]): Span => ({
    callIndex: 0,
    prompt: Int32Array.from(prompt),
    sampled: Int32Array.from(sampled),
    logprobs: new Float64Array(sampled.length),
    stop: 'stop',
    sampler: 'teacher',
  });
  const limits = { contextBudgetTokens: 100, maxDatumTokens: 5 };
  const episode = (...spans: Span[]) => ({ trial: 't' as TrialId, spans, stopReason: null });

  it('gives loss to the sampled tokens only', () => {
    const { datums, firstTokenDrops } = warmupDatums(episode(span([1, 2], [3, 4])), limits);
    expect(datums.map(({ tokens, mask }) => [[...tokens], [...mask]])).toEqual([
      [
        [1, 2, 3, 4],
        [0, 0, 1, 1],
      ],
    ]);
    expect(firstTokenDrops).toBe(0);
  });

  it('drops and counts a sequence that begins with a sampled token, and an episode that is too long', () => {
    expect(warmupDatums(episode(span([], [3, 4]), span([7], [8])), limits)).toMatchObject({
      datums: [{ fragment: 1 }],
      firstTokenDrops: 1,
    });
    expect(warmupDatums(episode(span([1, 2, 3], [4, 5, 6])), limits)).toMatchObject({ datums: [], stats: { overlongDrops: 1 } });
  });
});

describe('drawWarmupBatch', () => {
  it('draws each sequence once an epoch and none twice in a batch', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 12 }), fc.string(), (datums, batchSize, runName) => {
        const draws: number[] = [];
        for (let update = 1; draws.length < 3 * datums; update++) {
          const batch = drawWarmupBatch({ datums, batchSize, update, runName });
          expect(new Set(batch).size).toBe(Math.min(datums, batchSize));
          draws.push(...batch);
        }
        for (let epoch = 0; epoch < 3; epoch++)
          expect(draws.slice(epoch * datums, (epoch + 1) * datums).sort((a, b) => a - b)).toEqual(
            Array.from({ length: datums }, (_, i) => i),
          );
      }),
    );
  });

  it('is another draw for another run', () => {
    const draw = (runName: string) => drawWarmupBatch({ datums: 9, batchSize: 9, update: 1, runName });
    expect(draw('a')).toEqual(draw('a'));
    expect(draw('b')).not.toEqual(draw('a'));
  });
});
