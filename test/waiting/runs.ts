import type { SamplerPath, StatePath } from '../../core/ids.ts';
import { evaluationOf, trainingOf } from '../../core/run/testing/facts.ts';
import { NO_LEDGER, withSaved } from '../../core/training/checkpoint-ledger.ts';
import type { RunCarry } from '../../workflows/run.ts';
import { newFacts } from '../../workflows/run-state.ts';
import { listed, pinned } from '../workflow/facts.ts';

export const TASK_QUEUES = { control: 'stillroom', rollouts: 'rollouts', training: 'training' };

/** A year: what a run saved is renewed long before, and not while a test runs. */
const LIFE_SECONDS = 365 * 24 * 3600;
const NAME = 'step-0001';

/** A run as it goes on in a new execution after its last step: what is left is to evaluate the weights, to decide, and to ask a person. */
export function trainedRun(runId: string, nowMs: number): RunCarry {
  const plan = { steps: 1, checkpoints: { ttlSeconds: LIFE_SECONDS, keepLast: null } };
  const run = pinned({ runId, promote: true, holdout: listed('x') }, plan);
  const [statePath, samplerPath] = [`tinker://s/weights/${NAME}` as StatePath, `tinker://s/sampler_weights/${NAME}` as SamplerPath];
  const sampler = { kind: 'sampler', model: run.plan.student.model, path: samplerPath, version: NAME } as const;
  const saved = { name: NAME, step: 1, ttlMs: LIFE_SECONDS * 1000 };
  const ledger = withSaved(
    withSaved(NO_LEDGER, { ...saved, kind: 'state', path: statePath }, nowMs),
    { ...saved, kind: 'sampler', path: samplerPath },
    nowMs,
  );
  const facts = {
    ...newFacts(nowMs),
    pinned: run,
    phase: 'steps' as const,
    evaluations: [evaluationOf({ label: 'teacher', passed: 10 }), evaluationOf({ label: 'student-before', passed: 1 })],
    training: trainingOf({ updates: 1 }),
    sampler,
    published: sampler,
    savedState: { name: NAME, path: statePath },
    ledger,
    step: 1,
  };
  return { facts, desk: { decisions: [], waits: 0, maxUsd: null, paused: false, stopping: false } };
}
