import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readEnvironment } from '../services/settings/index.ts';
import type { RunStatus } from '../workflows/messages.ts';
import { type Product, startProduct } from './support/product.ts';

/** From the start through the plain `temporal` CLI to Failed. */
const LIMIT_MS = 5_000;

let product: Product;
beforeAll(async () => {
  product = await startProduct({ workers: [null] });
}, 120_000);
afterAll(() => product?.[Symbol.asyncDispose](), 60_000);

const temporal = (...args: readonly string[]) =>
  execa(readEnvironment().temporal, args, { env: { TEMPORAL_ADDRESS: product.stack.address } });

/** Starts a run as a person with nothing but `temporal` would, and waits for how it failed. */
async function start(workflowId: string, ...input: readonly string[]) {
  const startedAtMs = Date.now();
  const queue = product.settings.taskQueues.control;
  await temporal('workflow', 'start', '--type', 'distill', '--task-queue', queue, '--workflow-id', workflowId, ...input);
  const ended = product.link.client.workflow.getHandle(workflowId).result();
  const failure = await ended.then(
    () => null,
    (error: { cause?: { type?: string; message: string } }) => error.cause,
  );
  const status = (await product.link.client.workflow.getHandle(workflowId).describe()).status.name;
  return { status, type: failure?.type, message: failure?.message ?? '', ms: Date.now() - startedAtMs };
}

const GOOD = { agent: 'turn', config: 'examples/quickstart/run.toml', taskIds: ['a'], holdoutTaskIds: ['b'] };
const json = (input: unknown) => ['--input', JSON.stringify(input)];

it.each<[string, () => readonly string[], RegExp]>([
  ['no input', () => [], /^the run's input: /],
  ['null', () => json(null), /^the run's input: /],
  ['a number', () => json(42), /^the run's input: /],
  ['a text', () => json('garbage'), /^the run's input: /],
  ['a list', () => json([GOOD]), /^the run's input: /],
  ['an empty object', () => json({}), /agent.*config.*taskIds/s],
  ['a misspelt key', () => json({ ...GOOD, promot: true }), /promot/],
  ['a field of another kind', () => json({ ...GOOD, yes: 'please' }), /yes/],

  ['an encoding nobody here knows', () => bytes('garbage', 'binary/encrypted'), /input/],
  ['plain bytes', () => bytes('garbage', 'binary/plain'), /input/],
  ['a config that is not there', () => json({ ...GOOD, config: 'no.toml' }), /^config: there is no file no\.toml/],
  ['a config outside the project', () => json({ ...GOOD, config: '/etc/passwd' }), /^config: \/etc\/passwd is not below the project root/],
  ['a folder outside the project', () => json({ ...GOOD, runDir: '/tmp/x' }), /^taskIds: task "a" is not in|^runDir: /],
  ['an unknown task', () => json(GOOD), /^taskIds: task "a" is not in the job template's/],
])('%s ends a run as Failed, by name, within five seconds', async (_, input, message) => {
  const failure = await start(`bad-${randomUUID()}`, ...input());
  expect(failure).toMatchObject({ status: 'FAILED', type: 'BadRunInput' });
  expect(failure.message).toMatch(message);
  expect(failure.ms).toBeLessThan(LIMIT_MS);
});

it('a workflow id that is no run id does too', async () => {
  expect(await start(`a/${randomUUID()}`, ...json(GOOD))).toMatchObject({ status: 'FAILED', type: 'BadRunInput' });
});

it('a workflow id that a run gives to one of its parts does too', async () => {
  const failure = await start(`a-${randomUUID()}.step-0001`, ...json(GOOD));
  expect(failure).toMatchObject({ status: 'FAILED', type: 'BadRunInput', message: expect.stringMatching(/runs name their own parts/) });
});

it('a signal that cannot be read is shown and stalls nothing', async () => {
  const config = 'examples/quickstart/run.toml';
  const quick = '.stillroom/quickstart';
  const workflowId = `wait-${randomUUID()}`;
  const queue = product.settings.taskQueues.control;
  const input = json({ agent: 'turn', config, taskIds: `${quick}/train.json`, holdoutTaskIds: `${quick}/holdout.json` });
  await temporal('workflow', 'start', '--type', 'distill', '--task-queue', queue, '--workflow-id', workflowId, ...input);
  await temporal('workflow', 'signal', '--workflow-id', workflowId, '--name', 'stop', ...bytes('garbage', 'binary/encrypted'));
  const handle = product.link.client.workflow.getHandle(workflowId);
  while ((await handle.query<RunStatus>('status')).waitingFor === null) await sleep(50);
  expect((await handle.query<RunStatus>('status')).decisions).toMatchObject([{ message: 'stop', applied: false }]);
  await temporal('workflow', 'signal', '--workflow-id', workflowId, '--name', 'declineCost', ...json({ by: 'me' }));
  expect(await handle.result()).toMatchObject({ outcome: 'declined' });
});

function bytes(text: string, encoding: string): readonly string[] {
  return ['--input', Buffer.from(text).toString('base64'), '--input-base64', '--input-meta', `encoding=${encoding}`];
}
