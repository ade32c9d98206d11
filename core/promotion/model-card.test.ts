import { expect, it } from 'vitest';
import type { SamplerPath, StatePath } from '../ids.ts';
import { modelCard } from './model-card.ts';

const verdict = {
  accepted: true,
  reasons: [],
  threshold: null,
  teacher: 1,
  before: 0.25,
  after: 0.75,
  improvement: null,
  overThreshold: null,
  protocolHash: 'abcdef',
  earlierGates: 0,
};
const FACTS = {
  name: 'turn',
  version: 2,
  runId: 'new',
  plan: { student: { model: 's' }, teacher: { model: 't' } },
  branch: null,
  holdout: [1, 2],
  verdict,
  weights: { samplerPath: 'tinker://m/sampler_weights/f' as SamplerPath, statePath: 'tinker://m/weights/f' as StatePath },
  steps: 3,
  spend: { usd: 0, blindTo: [], lines: [], maxUsd: null },
};

it('says what the weights were branched from, and what "before" means then', () => {
  expect(modelCard(FACTS)).not.toMatch(/started from/);
  const source = { runId: 'old', executionId: 'e', state: 'step-0007', savedAtMs: 1 };
  expect(modelCard({ ...FACTS, branch: { statePath: 'tinker://o/weights/step-0007' as StatePath, updates: 7, source } })).toContain(
    'It started from trained weights: step-0007 of run old (tinker://o/weights/step-0007). `student before` is the base model all the same.',
  );
});
