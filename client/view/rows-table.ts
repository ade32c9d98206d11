import { METERS } from '../../core/measures/meters.ts';
import type { MetricsRow } from '../../core/measures/metrics-row.ts';
import { readRate, solveRateOf } from '../../core/measures/rates.ts';
import { isUnknown } from '../../core/measures/spend.ts';
import type { Colors } from '../console.ts';
import { count, DASH, duration, number, percent, usd } from './format.ts';
import { table } from './table.ts';
import { wrapped } from './wrap.ts';

/** Rows that are shown, the newest last. */
const SHOWN = 8;

/** The last steps: what they learned, then what they did and cost. Two tables, each within 80 columns; empty without a step. */
export function rowsTable(rows: readonly MetricsRow[], colors: Colors): string {
  const last = rows.slice(-SHOWN);
  return last.length === 0 ? '' : `${learningTable(last, colors)}\n\n${workTable(last, colors)}`;
}

const UNITS = "KL and entropy in nats per token; length in sampled tokens per episode; × is the ratio to the run's first measured step";
const GRADED = 'graded: mean share of passed tests (trials with a test report)';

function learningTable(rows: readonly MetricsRow[], colors: Colors): string {
  const isGraded = rows.some((row) => row.graded_trials > 0);
  const head = ['step', 'solved', ...(isGraded ? ['graded'] : []), 'KL/token', 'entropy', 'length'];
  const cells = rows.map((row) => [
    `${row.step}`,
    `${percent(solveRateOf(row))} (${row.passed_trials}/${row.executed_trials})`,
    ...(isGraded ? [graded(row)] : []),
    number(row.reverse_kl_per_token),
    withRatio(number(row.entropy_per_token), row.entropy_ratio),
    withRatio(tokens(row.mean_generation_tokens), row.generation_tokens_ratio),
  ]);
  return [table(colors, head, cells, 0), legend(isGraded ? `${UNITS}; ${GRADED}` : UNITS, colors)].join('\n');
}

const legend = (text: string, colors: Colors) => colors.dim(wrapped(`${text}.`));

/** Mean share of passed tests, with the number of trials that have one. */
function graded({ graded_solve_rate, graded_trials }: MetricsRow): string {
  return `${percent(readRate({ rate: graded_solve_rate, over: graded_trials }))} (${graded_trials})`;
}

const withRatio = (value: string, ratio: number | null) => (ratio === null ? value : `${value} ×${ratio.toFixed(2)}`);

const tokens = (mean: number | null) => (mean === null ? DASH : mean < 100 ? mean.toFixed(1) : count(Math.round(mean)));

const DISTURBED =
  'of trials whose worker died: sampled tokens answered from their records, those bought in vain; calls without a recorded answer';

function workTable(rows: readonly MetricsRow[], colors: Colors): string {
  const wasDisturbed = rows.some(({ replayed_tokens, rebought_tokens, lost_calls }) => replayed_tokens + rebought_tokens + lost_calls > 0);
  const head = [
    'step',
    'updates',
    'sampler age',
    ...(wasDisturbed ? ['replayed', 're-bought', 'lost'] : []),
    'time',
    'USD',
    'forecast USD',
  ];
  const cells = rows.map((row) => [
    `${row.step}`,
    `${row.optimizer_updates}`,
    `${row.sampler_staleness_steps}`,
    ...(wasDisturbed ? [count(row.replayed_tokens), count(row.rebought_tokens), count(row.lost_calls)] : []),
    duration(row.wall_ms),
    ...money(row),
  ]);
  const isPriced = rows.every((row) => row.unpriced_meters.length === 0);
  return [
    table(colors, head, cells, 0),
    ...(wasDisturbed ? [legend(DISTURBED, colors)] : []),
    ...(isPriced ? [] : [legend('+ ? is what has no price', colors)]),
  ].join('\n');
}

/** Cost and forecast. Meters without a price make them a lower bound; where no counted meter has one, nobody can say either. */
function money(row: MetricsRow): [cost: string, forecast: string] {
  const { unpriced_meters: blindTo, forecast_usd: forecast } = row;
  const lines = METERS.filter((meter) => row[`${meter}_tokens`] > 0).map((meter) => ({ meter }));
  const told = (value: number) => (isUnknown({ lines, blindTo }) ? 'unknown' : `${usd(value)}${blindTo.length === 0 ? '' : ' + ?'}`);
  return [told(row.usd), forecast === null ? DASH : told(forecast)];
}
