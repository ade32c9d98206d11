import { expect, test, vi } from 'vitest';
import type { SamplerPath, StatePath } from '../core/ids.ts';
import { metricsRowOf } from '../core/measures/testing/rows.ts';
import { addUsage, type LostCall, NO_USAGE } from '../core/measures/usage.ts';
import { MOST_TALLY_BYTES } from '../core/run/batch-sizes.ts';
import { MAX_NAME_CHARS, MAX_REASON_CHARS } from '../core/run/decision.ts';
import { evaluationOf } from '../core/run/testing/facts.ts';
import { compacted, withChanged, withSaved } from '../core/training/checkpoint-ledger.ts';
import { withCheckpoint } from '../core/training/checkpoints.ts';
import { MOST_PAYLOAD_BYTES } from '../services/temporal/payload-guard.ts';
import { pinned } from '../test/workflow/facts.ts';
import { RunBoard } from './run-board.ts';
import { RunDesk } from './run-desk.ts';
import { addNotice, addRow, newFacts, type RunFacts } from './run-state.ts';

const { receivers, queries } = vi.hoisted(() => ({
  receivers: new Map<string, (input: unknown) => unknown>(),
  queries: new Map<string, () => unknown>(),
}));
vi.mock('@temporalio/workflow', async (original) => ({
  ...(await original<typeof import('@temporalio/workflow')>()),
  workflowInfo: () => ({ workflowId: 'r'.repeat(100) }),
  upsertSearchAttributes: () => {},
  setCurrentDetails: () => {},
  condition: () => new Promise(() => {}),
  setHandler: ({ type, name }: { type: string; name: string }, take: (input?: unknown) => unknown) =>
    type === 'query' ? queries.set(name, take) : receivers.set(`${type} ${name}`, take),
}));

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length;

/** Held-out tasks whose counts come to as much as a run may start with. */
function tallies() {
  const of = (index: number) => ({ taskId: `${'t'.repeat(50)}-${String(index).padStart(6, '0')}`, executed: 3, passed: 1 });
  return Array.from({ length: Math.floor(MOST_TALLY_BYTES / (bytesOf(of(0)) + 1)) }, (_, index) => of(index));
}

/** A state and a sampler after a step, as a service that renews lives and names its models at length has them. */
function save(facts: RunFacts, step: number): void {
  const name = `step-${String(step).padStart(4, '0')}`;
  const of = (kind: string) => `tinker://01234567-89ab-cdef-0123-456789abcdef:train:0/${kind}/${name}`;
  const [statePath, samplerPath] = [of('weights') as StatePath, of('sampler_weights') as SamplerPath];
  for (const [path, kind] of [[statePath, 'state'] as const, [samplerPath, 'sampler'] as const])
    facts.ledger = withSaved(facts.ledger, { path, kind, name, step, ttlMs: 7 * 24 * 3_600_000 }, 1_790_000_000_000 + step);
  facts.ledger = withChanged(facts.ledger, (entry) => ({ ...entry, seen: 'listed' }));
  facts.checkpoints = withCheckpoint(facts.checkpoints, { step, statePath, samplerPath });
}

/** A service that loses a call in each trial of each step. */
const lostIn = (step: number): LostCall[] =>
  Array.from({ length: 64 }, (_, trial) => {
    const of = `${'r'.repeat(40)}-s${String(step).padStart(4, '0')}-t${trial}`;
    return { kind: 'sample', of, callIndex: 10, promptTokens: 40_000, sampledTokens: 8_192 };
  });

/** A run of 500 steps of 64 trials at its end, with all that it keeps of itself. */
function atTheEnd(): RunFacts {
  const facts = newFacts(0);
  facts.pinned = pinned({ runId: 'r'.repeat(100) }, { steps: 500, tasksPerBatch: 16, groupSize: 4 });
  const perTask = tallies();
  facts.evaluations = (['teacher', 'student-before', 'student-after'] as const).map((label) => evaluationOf({ label, perTask }));
  facts.interim = Array.from({ length: 20 }, (_, index) => evaluationOf({ label: `interim-00${index}` }));
  for (let step = 1; step <= 500; step++) {
    const warnings = ['entropy is at 0.49 of its first value, at or below 0.5 (tripwire.entropy_warn_frac)'.repeat(2)];
    addRow(
      facts,
      metricsRowOf({
        step,
        warnings,
        stop_reason_counts: { submitted: 60, max_turns: 2, context_overflow: 2 },
        fragment_causes: { branch: 9, retry: 9, compaction: 9 },
      }),
    );
    for (const warning of warnings) addNotice(facts, `step ${step}: ${warning}`);
    save(facts, step);
    facts.usage = addUsage(facts.usage, { ...NO_USAGE, lost: lostIn(step) });
  }
  facts.ledger = compacted(facts.ledger, () => false);
  return facts;
}

/** Messages as many and as long as people can send them. */
function flooded(facts: RunFacts): { board: RunBoard; desk: RunDesk } {
  const board = new RunBoard(facts, () => desk);
  const desk: RunDesk = new RunDesk({ spentUsd: () => 1, ended: () => false, changed: () => board.refresh() });
  desk.open();
  const longest = { by: '一'.repeat(MAX_NAME_CHARS), reason: '一'.repeat(MAX_REASON_CHARS) };
  for (let each = 0; each < 300; each++) {
    receivers.get('signal confirmCost')?.(longest);
    receivers.get('signal setBudget')?.({ ...longest, maxUsd: 10 + each });
  }
  return { board, desk };
}

test('what the largest run shows of itself, and what it hands on, stays below what is sent', () => {
  const facts = atTheEnd();
  const { desk } = flooded(facts);
  expect(desk.decisions.filter(({ applied }) => applied).length).toBeGreaterThan(10);
  expect(desk.decisions.filter(({ applied }) => !applied).length).toBeGreaterThan(10);
  expect(facts.notices).toHaveLength(100);
  for (const name of ['status', 'metrics', 'spend']) expect(bytesOf(queries.get(name)?.()), name).toBeLessThan(0.8 * MOST_PAYLOAD_BYTES);
  expect(bytesOf({ facts, desk: desk.carry() })).toBeLessThan(0.9 * MOST_PAYLOAD_BYTES);
});
