import type { MetricsRow } from '../../core/measures/metrics-row.ts';
import { solveRateOf } from '../../core/measures/rates.ts';
import { number, percent } from './format.ts';

/** What a step says of learning: `solved 39.8 % (51/128) · KL/token 0.432 nats` */
export function learned(row: MetricsRow): string {
  const solved = `solved ${percent(solveRateOf(row))} (${row.passed_trials}/${row.executed_trials})`;
  return `${solved} · KL/token ${number(row.reverse_kl_per_token)} nats`;
}
