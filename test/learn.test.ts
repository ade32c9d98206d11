import { DefaultLogger, Runtime } from '@temporalio/worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { permuteAdvantages } from './support/controls.ts';
import { type Product, runQuickstart, SHORT, startProduct, told, withWorkerHere } from './support/product.ts';

let product: Product;
beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  product = await startProduct({ workers: [] });
}, 120_000);
afterAll(() => product?.[Symbol.asyncDispose](), 60_000);

it('the student learns by training: the 95 % interval of after − before lies above zero and the gate accepts', async () => {
  const ended = await withWorkerHere(product, undefined, () => runQuickstart(product, SHORT, 'learn'));
  console.log(`learns: ${told(ended)}`);
  expect(ended.result.verdict?.improvement?.interval.low).toBeGreaterThan(0);
  expect(ended.result).toMatchObject({ outcome: 'accepted', adapter: { name: 'turn' } });
}, 400_000);

it('with a learning rate of 1e-12 the same run is not promoted', async () => {
  const ended = await withWorkerHere(product, undefined, () =>
    runQuickstart(product, { ...SHORT, 'train.learning_rate': 1e-12 }, 'learn-not'),
  );
  console.log(`learning rate 1e-12: ${told(ended)}`);
  expect(['rejected', 'stopped by tripwire']).toContain(ended.result.outcome);
}, 400_000);

it('with permuted advantages the same run is not promoted', async () => {
  const ended = await withWorkerHere(product, permuteAdvantages, () => runQuickstart(product, SHORT, 'learn-permuted'));
  console.log(`permuted advantages: ${told(ended)}`);
  expect(['rejected', 'stopped by tripwire']).toContain(ended.result.outcome);
}, 400_000);
