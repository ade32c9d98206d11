/**
 * Does the student learn by training, and only by training? The whole quickstart through the whole product, on two seeds: as it is, with
 * a learning rate of 1e-12, and with permuted advantages. Prints held-out solve rates, the verdict, and how far entropy and length moved.
 *
 *   npm run bench -- learn [--seeds 2] [--only learns|rate|permuted]
 */
import { parseArgs } from 'node:util';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import Table from 'cli-table3';
import type { TrainingDeps } from '../activities/training.ts';
import type { MetricsRow } from '../core/measures/metrics-row.ts';
import { permuteAdvantages } from '../test/support/controls.ts';
import { type Ended, type Keys, type Product, runQuickstart, startProduct, withWorkerHere } from '../test/support/product.ts';

type Condition = {
  readonly name: string;
  readonly keys: Keys;
  readonly alter?: TrainingDeps['alterAdvantages'];
};

const CONDITIONS: readonly Condition[] = [
  { name: 'learns', keys: {} },
  { name: 'rate', keys: { 'train.learning_rate': 1e-12 } },
  { name: 'permuted', keys: {}, alter: permuteAdvantages },
];

export async function main(): Promise<void> {
  const { values } = parseArgs({ options: { seeds: { type: 'string', default: '2' }, only: { type: 'string' } } });
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const table = new Table({
    head: ['seed', 'run', 'teacher', 'before', 'after', 'after / teacher', 'entropy ratio', 'length ratio', 'outcome', 's'],
  });
  await using product = await startProduct({ workers: [] });
  for (let seed = 1; seed <= Number(values.seeds); seed++)
    for (const condition of CONDITIONS.filter(({ name }) => values.only === undefined || name === values.only)) {
      const startedAtMs = Date.now();
      const { ended, rows } = await measured(product, condition, `bench-${condition.name}-${seed}`);
      table.push([seed, condition.name, ...cells(ended, rows), Math.round((Date.now() - startedAtMs) / 1000)]);
      console.log(table.toString());
    }
}

async function measured(
  product: Product,
  { keys, alter }: Condition,
  runId: string,
): Promise<{ ended: Ended; rows: readonly MetricsRow[] }> {
  return withWorkerHere(product, alter, async () => {
    const ended = await runQuickstart(product, keys, runId);
    const { rows } = await product.link.client.workflow.getHandle(runId).query<{ rows: readonly MetricsRow[] }>('metrics');
    return { ended, rows };
  });
}

function cells({ result }: Ended, rows: readonly MetricsRow[]): string[] {
  const rate = (label: string) => {
    const found = result.evaluations.find((evaluation) => evaluation.label === label);
    return found ? `${found.passed}/${found.executed}` : '–';
  };
  const { verdict } = result;
  const share = verdict?.after != null && verdict.teacher ? (verdict.after / verdict.teacher).toFixed(2) : '–';
  return [
    rate('teacher'),
    rate('student-before'),
    rate('student-after'),
    share,
    range(rows.map((row) => row.entropy_ratio)),
    range(rows.map((row) => row.generation_tokens_ratio)),
    `${result.outcome}${verdict ? ` ${verdict.reasons.join(', ')}` : ''}`,
  ];
}

function range(ratios: readonly (number | null)[]): string {
  const known = ratios.filter((ratio) => ratio !== null);
  return known.length === 0 ? '–' : `${Math.min(...known).toFixed(2)} … ${Math.max(...known).toFixed(2)}`;
}
