import pc from 'picocolors';
import { describe, expect, test } from 'vitest';
import type { SamplerPath, StatePath } from '../../core/ids.ts';
import type { Followed } from '../follow.ts';
import { evaluation, evidence, runResult, runSpend, runStatus, verdict } from '../testing/runs.ts';
import { finalText } from './final.ts';
import { reportOf } from './report.ts';

const plain = pc.createColors(false);
const evaluations = [evaluation('teacher', 134, 143), evaluation('student-before', 55, 144), evaluation('student-after', 117, 144)];
const adapter = { name: 'turn', version: 3, path: '.stillroom/adapters/turn/v3' };
const handoff = { path: 'x/handoff.toml', toml: '' };
const weights = {
  samplerPath: 'tinker://m/sampler_weights/step-0016' as SamplerPath,
  statePath: 'tinker://m/weights/step-0016' as StatePath,
};
const spend = runSpend({ student_sample: [0.4114, 0.3], teacher_sample: [0.009, null] }, { maxUsd: 2, forecastUsd: 0.2 });

function text(followed: Followed): string {
  return finalText(reportOf('run-1', followed), plain);
}

describe('an accepted run', () => {
  const result = runResult({ outcome: 'accepted', evaluations, verdict: verdict({}), adapter, handoff, weights, spend });
  const status = runStatus({ wallMs: { baselines: 20_000, steps: 70_000, gate: 12 } });
  const shown = text({ end: { kind: 'completed', result }, status, wallMs: 100_000 });

  test.each([
    ['the outcome', /^run-1 ended: accepted$/m],
    ['the teacher with its denominator', /^teacher +93\.7 % +134\/143 +48 +1 +9\.0 s$/m],
    ['the student before', /^student before +38\.2 % +55\/144 +48 +0 /m],
    ['the student after', /^student after +81\.3 % +117\/144 +48 +0 /m],
    ['the verdict', /^Gate: accepted$/m],
    ['what was required', /after 81\.0 % ≥ 66\.0 %/],
    [
      'the difference, its interval, p and n',
      /after − before +\+0\.430 · 95 % interval 0\.340 to 0\.520 · p < 0\.0001 \(sign-flip\) · n = 48 tasks/,
    ],
    ['the adapter version', /^adapter +turn v3$/m],
    ['the handoff', /^handoff +x\/handoff\.toml$/m],
    ['the sampler path', /^sampler +tinker:\/\/m\/sampler_weights\/step-0016$/m],
    ['the run folder', /^run folder \.stillroom\/runs\/run-1$/m],
    ['the spend by meter', /^student_sample +411,400 +\$0\.3000 +\$0\.1234$/m],
    ['an unknown price', /^teacher_sample +9,000 +unknown +unknown$/m],
    ['the cap and what it cannot see', /^Cap: \$2\.00\. It cannot see teacher_sample: it has no price\.$/m],
    ['time by part', /^steps +1 min 10 s +70 %$/m],
    ['time outside of phases', /^between phases +10\.0 s +10 %$/m],
    ['the sum', /^all +1 min 40 s$/m],
  ])('shows %s', (_, pattern) => expect(shown).toMatch(pattern));

  test('forecasts nothing: nothing is to come', () => expect(shown).not.toContain('Forecast'));

  test('leaves out parts that took no time', () => expect(shown).not.toMatch(/^gate /m));
});

test('a rejected run says why, and what evidence there is', () => {
  const rejected = verdict({
    accepted: false,
    reasons: ['below_teacher_fraction', 'some_new_reason'],
    after: 0.4,
    improvement: evidence(-0.02, 0.61, -0.08, 0.05),
    earlierGates: 2,
  });
  const result = runResult({ outcome: 'rejected', evaluations, verdict: rejected, weights });
  const shown = text({ end: { kind: 'completed', result }, status: null, wallMs: 1_000 });
  expect(shown).toContain('Gate: not accepted');
  expect(shown).toContain('because the student after training is below the required share of the teacher');
  expect(shown).toContain('because some_new_reason');
  expect(shown).toContain('after 40.0 % < 66.0 %');
  expect(shown).toContain('−0.020 · 95 % interval -0.080 to 0.050 · p = 0.6100');
  expect(shown).toContain('2 earlier gates of this protocol');
  expect(shown).not.toContain('adapter');
});

test('what was not measured is a dash, never a zero', () => {
  const result = runResult({ outcome: 'stopped', evaluations: [evaluation('teacher', 0, 0)] });
  const shown = text({ end: { kind: 'completed', result }, status: null, wallMs: 1_000 });
  expect(shown).toMatch(/^teacher +– +0\/0 /m);
  expect(shown).toMatch(/^student after +– +– +– /m);
});

test('a rate that was not measured is neither above nor below the required one', () => {
  const shownFor = (known: Parameters<typeof verdict>[0]) => {
    const result = runResult({
      outcome: 'rejected',
      verdict: verdict({ accepted: false, reasons: ['not_measured'], improvement: null, ...known }),
    });
    return text({ end: { kind: 'completed', result }, status: null, wallMs: 1_000 });
  };
  expect(shownFor({ after: null })).toContain('after – not comparable with 66.0 %');
  expect(shownFor({ teacher: null, threshold: null })).toContain('after 81.0 % not comparable with –');
});

test('an imported baseline is shown as one, without a time, and without tasks where its report has none', () => {
  const imported = { ...evaluation('teacher', 134, 144), source: 'imported', perTask: [] } as const;
  const shown = text({ end: { kind: 'completed', result: runResult({ evaluations: [imported] }) }, status: null, wallMs: 1_000 });
  expect(shown).toMatch(/^teacher \(imported\) +93\.1 % +134\/144 +– +0 +–/m);
});

test('a failed run shows its named failure with every line, and what was known', () => {
  const failure = { type: 'PreflightFailed', message: 'end tokens: differ\ntoken proof: 0.4 nat' };
  const status = runStatus({ notices: ['no price for teacher_sample'] });
  const shown = text({ end: { kind: 'failed', failure }, status, wallMs: 1_000 });
  expect(shown).toContain('run-1 failed (PreflightFailed):\n  end tokens: differ\n  token proof: 0.4 nat');
  expect(shown).toContain('note: no price for teacher_sample');
});

test('a cancelled run is said to be that, and not to have failed', () => {
  const failure = { type: 'CancelledFailure', message: 'Workflow canceled' };
  const shown = text({ end: { kind: 'failed', failure }, status: runStatus({}), wallMs: 1_000 });
  expect(shown).toMatch(/^run-1 was cancelled$/m);
  expect(shown).not.toContain('failed');
});
