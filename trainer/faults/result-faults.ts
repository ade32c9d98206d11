import type { Draws } from './active-rule.ts';
import { candidateTables, editCandidates } from './candidates.ts';
import type { FaultOf, ResultFault } from './fault-schemas.ts';
import { type Edit, editLogprobs, hasLogprobs, type OpenResult } from './results.ts';

/** Whether a result has what the fault spoils. */
export const concernsResult = (fault: ResultFault, result: OpenResult): boolean =>
  fault.kind === 'json_result' ||
  hasLogprobs(result, fault.in) ||
  (fault.kind === 'jitter' && candidateTables(result, fault.in).length > 0);

/** Spoils a result. The form of a result is not its content: `json_result` changes nothing here. */
export function alterResult(fault: ResultFault, result: OpenResult, draws: Draws): void {
  if (fault.kind === 'json_result') return;
  editLogprobs(result, fault.in, editOf(fault, draws));
  if (fault.kind !== 'jitter') return;
  for (const table of candidateTables(result, fault.in)) editCandidates(table, jittering(fault, draws));
}

const jittering =
  ({ amount_nats, distribution }: FaultOf<'jitter'>, draws: Draws) =>
  (logprob: number): number =>
    Math.min(logprob + amount_nats * noise(distribution, draws), 0);

function editOf(fault: Exclude<ResultFault, FaultOf<'json_result'>>, draws: Draws): Edit {
  switch (fault.kind) {
    case 'logprobs':
      return overwriting(fault, draws);
    case 'jitter':
      return (row) => row.map(jittering(fault, draws));
    case 'extra_logprob':
      return (row, width) => Float32Array.of(...row, ...Array.from({ length: width }, () => -1));
    case 'omit_logprobs':
      return () => null;
  }
}

const VALUES = { nan: Number.NaN, null: Number.NaN, inf: Number.POSITIVE_INFINITY, '-inf': Number.NEGATIVE_INFINITY };

function overwriting({ value, at, share }: FaultOf<'logprobs'>, draws: Draws): Edit {
  return (row) => {
    const places = new Set(at?.map((index) => (index < 0 ? row.length + index : index)));
    const isHit = (i: number) => (share === undefined ? at === undefined || places.has(i) : draws() < share);
    return row.map((old, i) => (isHit(i) ? VALUES[value] : old));
  };
}

/** In units of the amount: a standard normal number (Box and Muller), or one in [-1, 1). */
function noise(distribution: 'gaussian' | 'uniform', draws: Draws): number {
  if (distribution === 'uniform') return 2 * draws() - 1;
  return Math.sqrt(-2 * Math.log(1 - draws())) * Math.cos(2 * Math.PI * draws());
}
