import type { Evidence } from '../../core/gate/evidence.ts';
import { METERS, type Meter } from '../../core/measures/meters.ts';
import type { SpendLine } from '../../core/measures/spend.ts';
import { NO_USAGE, NOTHING_SENT } from '../../core/measures/usage.ts';
import type { EvalLabel, EvalResult, GateVerdict } from '../../core/run/results.ts';
import { evaluationOf } from '../../core/run/testing/facts.ts';
import type { RunResult, RunSpend, RunStatus } from '../../workflows/messages.ts';

/** Runs for tests of the views: everything empty but what the test names. */
export function runStatus(known: Partial<RunStatus>): RunStatus {
  return {
    runId: 'run-1',
    phase: 'steps',
    waitingFor: null,
    outcome: null,
    step: 0,
    steps: 16,
    student: 'stillroom/tiny-student',
    teacher: 'stillroom/tiny-teacher',
    agent: 'turn@v1',
    runDir: '.stillroom/runs/run-1',
    branch: null,
    child: null,
    checks: [],
    evaluations: [],
    interim: [],
    lastRow: null,
    warmup: null,
    verdict: null,
    adapter: null,
    handoff: null,
    weights: null,
    resume: { latest: null, restoreFrom: null },
    spend: runSpend({}),
    checkpoints: { saved: 0, firstEnd: null, warning: null },
    usage: NO_USAGE,
    decisions: [],
    notices: [],
    wallMs: {},
    ...known,
  };
}

export function runResult(known: Partial<RunResult>): RunResult {
  const { runId, verdict, adapter, handoff, weights, resume, evaluations, spend } = runStatus({});
  return { outcome: 'accepted', runId, verdict, adapter, handoff, weights, resume, evaluations, spend, ...known };
}

/** Spend by meter: its tokens in millions and a price per million, null where nobody knows one. */
export function runSpend(
  meters: Partial<Record<Meter, readonly [mtok: number, price: number | null]>>,
  known: Partial<RunSpend> = {},
): RunSpend {
  const lines = METERS.flatMap((meter): SpendLine[] => {
    const [mtok, price] = meters[meter] ?? [0, null];
    return mtok === 0 ? [] : [{ meter, tokens: mtok * 1e6, pricePerMtokUsd: price, usd: price === null ? null : mtok * price }];
  });
  const blindTo = lines.flatMap(({ meter, usd }) => (usd === null ? [meter] : []));
  const usd = lines.reduce((sum, line) => sum + (line.usd ?? 0), 0);
  const more = { maxUsd: null, forecastUsd: null, reservedUsd: 0, sent: NOTHING_SENT, lostCalls: 0 };
  return { usd, blindTo, lines, ...more, ...known };
}

/** An evaluation of `tasks` tasks with three attempts each. */
export function evaluation(label: EvalLabel, passed: number, executed: number, tasks = 48): EvalResult {
  const perTask = Array.from({ length: tasks }, (_, index) => ({ taskId: `task-${index}`, executed: 3, passed: 1 }));
  const model = { kind: 'base', model: label, version: label } as const;
  return evaluationOf({ label, model, executed, passed, infraFailed: tasks * 3 - executed, perTask, usd: 0.01, wallMs: 9_000 });
}

export function verdict(known: Partial<GateVerdict>): GateVerdict {
  return {
    accepted: true,
    reasons: [],
    threshold: 0.66,
    teacher: 0.94,
    before: 0.38,
    after: 0.81,
    improvement: evidence(0.43, 0.00001, 0.34, 0.52),
    overThreshold: evidence(0.15, 0.003, 0.06, 0.24),
    protocolHash: 'abc',
    earlierGates: 0,
    ...known,
  };
}

export function evidence(mean: number, pValue: number, low: number, high: number): Evidence {
  return { n: 48, mean, pValue, interval: { low, high }, confidence: 0.95, method: 'monte-carlo' };
}
