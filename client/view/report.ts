import type { Outcome } from '../../core/run/phase.ts';
import type { AdapterRecord, EvalResult, GateVerdict, Handoff, SavedWeights } from '../../core/run/results.ts';
import type { RunSpend } from '../../workflows/messages.ts';
import type { Failure } from '../failure.ts';
import type { Followed } from '../follow.ts';
import { type WallPart, wallParts } from './wall-table.ts';

/** All that the end of a run has to say; `--json` prints it as it is. */
export type RunReport = {
  readonly runId: string;
  /** Null when the run failed. */
  readonly outcome: Outcome | null;
  readonly failure: Failure | null;
  readonly evaluations: readonly EvalResult[];
  readonly verdict: GateVerdict | null;
  readonly adapter: AdapterRecord | null;
  readonly handoff: Handoff | null;
  readonly weights: SavedWeights | null;
  readonly spend: RunSpend | null;
  readonly notices: readonly string[];
  readonly runDir: string | null;
  readonly wallMs: number;
  readonly wall: readonly WallPart[];
};

/** The report of an ended run. The result is the truth; what only the status knows is missing when no worker could tell it. */
export function reportOf(runId: string, { end, status, wallMs }: Followed): RunReport {
  const result = end.kind === 'completed' ? end.result : null;
  const known = result ?? status;
  return {
    runId,
    outcome: result?.outcome ?? null,
    failure: end.kind === 'failed' ? end.failure : null,
    evaluations: known?.evaluations ?? [],
    verdict: known?.verdict ?? null,
    adapter: known?.adapter ?? null,
    handoff: known?.handoff ?? null,
    weights: known?.weights ?? null,
    spend: known?.spend ?? null,
    notices: status?.notices ?? [],
    runDir: status?.runDir ?? null,
    wallMs,
    wall: wallParts(status?.wallMs ?? {}, wallMs),
  };
}
