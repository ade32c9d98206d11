import { describe, expect, it } from 'vitest';
import { parseRunConfig } from '../config/parse.ts';
import { estimateCost } from './cost.ts';
import { forecastUsd } from './forecast.ts';

const estimate = (more: string) => {
  const parsed = parseRunConfig(`[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n${more}`, 'run.toml');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return estimateCost(parsed.config, { nTrain: 12, nHoldout: 6 });
};
const tokens = (more: string, meter: string) => estimate(more).lines.find((line) => line.meter === meter)?.tokens ?? Number.NaN;

describe('estimateCost', () => {
  it('does not count baselines that are imported', () => {
    expect(estimate('').baselineEpisodes).toBe(3 * 6 * 3);
    expect(estimate('[eval]\nteacher_baseline_from = "t.json"\n').baselineEpisodes).toBe(2 * 6 * 3);
    expect(estimate('[eval]\nteacher_baseline_from = "t.json"\nstudent_baseline_from = "s.json"\n').baselineEpisodes).toBe(6 * 3);
    expect(tokens('[eval]\nteacher_baseline_from = "t.json"\n', 'teacher_sample')).toBe(0);
  });

  it('does not count a warm-up that is loaded', () => {
    expect(estimate('[warmup]\nsteps = 3\n').warmupEpisodes).toBe(12);
    expect(estimate('[warmup]\nsteps = 3\ntrajectories_from = "runs/a"\n').warmupEpisodes).toBe(0);
  });

  it('lets train.rollout_max_turns shorten training episodes only', () => {
    const capped = '[train]\nrollout_max_turns = 10\n';
    expect(tokens(capped, 'student_train')).toBe(1280 * (2048 + 5 * 1536));
    expect(tokens(capped, 'teacher_sample')).toBe(tokens('', 'teacher_sample'));
  });
});

it.each([
  ['before the first step', { spentUsd: 1, stepUsd: [], remainingSteps: 3, remainingEvalUsd: 1 }, null],
  ['after two steps', { spentUsd: 5, stepUsd: [1, 3], remainingSteps: 3, remainingEvalUsd: 1 }, 12],
  ['at the end', { spentUsd: 5, stepUsd: [1, 3], remainingSteps: 0, remainingEvalUsd: 0 }, 5],
])('forecast %s', (_, facts, expected) => expect(forecastUsd(facts)).toBe(expected));
