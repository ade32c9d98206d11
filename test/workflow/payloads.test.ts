import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, type TemporalFailure } from '@temporalio/common';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { beforeAll, describe, expect, it } from 'vitest';
import { guardResults } from '../../services/temporal/activity-guards.ts';
import { bundleSources, PAYLOAD_CONVERTER } from '../../services/temporal/workflow-bundle.ts';
import { localServer } from './environment.ts';
import { endSignal, type Made, make, type Passing, valueQuery } from './passing.ts';
import { serverOfFile } from './runs.ts';

const env = serverOfFile(() => localServer());
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
let workflowBundle: { code: string };
beforeAll(async () => {
  const sources = { ...bundleSources(here('../..')), workflowsPath: here('passing.ts') };
  workflowBundle = await bundleWorkflowCode({ ...sources, logger: new DefaultLogger('ERROR') });
});

let attempts: number;
const activities: Passing = {
  give: async (made) => {
    attempts++;
    return make(made);
  },
  take: async (value) => {
    attempts++;
    return typeof value;
  },
};

async function working<T>(over: Partial<Passing>, test: () => Promise<T>): Promise<T> {
  attempts = 0;
  const worker = await Worker.create({
    connection: env().nativeConnection,
    taskQueue: 'passing',
    workflowBundle,
    activities: { ...activities, ...over },
    dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
    interceptors: { activity: [guardResults] },
  });
  return worker.runUntil(test);
}

const start = (workflow: string, made: Made) =>
  env().client.workflow.start(workflow, { taskQueue: 'passing', workflowId: randomUUID(), args: [made] });
const end = async (workflow: string, made: Made) => (await start(workflow, made)).result();

/** The innermost failure of a workflow: the one that says why. */
async function failureOf(work: Promise<unknown>): Promise<ApplicationFailure> {
  const error = await work.then(
    () => expect.unreachable('it did not fail'),
    (error: unknown) => error,
  );
  if (!(error instanceof WorkflowFailedError)) throw error;
  let cause = error.cause as TemporalFailure;
  while (cause.cause) cause = cause.cause as TemporalFailure;
  if (!(cause instanceof ApplicationFailure)) throw cause;
  return cause;
}

/** Each way that a value takes, by the workflow that sends it, and what its failure must name. */
const WAYS = [
  ['intoActivity', 'the input of activity take', 0],
  ['outOfActivity', 'the result of activity give', 1],
  ['intoChild', 'the input of child ends', 0],
  ['outOfChild', 'the result of the workflow', 0],
  ['intoNext', 'the input of intoNext, continued as new', 0],
] as const;

describe.each(WAYS)('%s', (workflow, passage, times) => {
  it.each([
    ['too much', 'PayloadTooLarge', /has 10600\d\d bytes; at most 1048576 are sent/],
    ['a NaN', 'NotANumber', /holds NaN at rows\.1\.loss/],
    ['an infinity', 'NotANumber', /holds -Infinity at rows\.1\.loss/],
  ] as const)('%s fails by name, at once and for good', async (made, type, words) => {
    await working({}, async () => {
      const failure = await failureOf(end(workflow, made));
      expect(failure).toMatchObject({ type, nonRetryable: true });
      expect(failure.message).toContain(passage);
      expect(failure.message).toMatch(words);
      expect(attempts).toBe(times);
    });
  });
});

it('what is large but not too large passes every way', async () => {
  await working({}, async () => {
    expect(await end('intoActivity', 'much')).toBe('object');
    for (const workflow of ['outOfActivity', 'outOfChild']) expect(await end(workflow, 'much')).toBeGreaterThan(300_000);
    expect(await end('intoChild', 'much')).toBe('ended');
  });
});

it.each(['too much', 'a NaN'] as const)('a query whose answer is %s fails, and the workflow goes on', async (made) => {
  await working({}, async () => {
    const handle = await start('answers', made);
    await expect(handle.query(valueQuery)).rejects.toThrow(/the result of query value (has 10600\d\d bytes|holds NaN)/);
    await handle.signal(endSignal);
    expect(await handle.result()).toBe('ended');
  });
});

it.each([
  ['words', 'x'.repeat(3_000_000), []],
  ['details', 'x', ['x'.repeat(3_000_000)]],
] as const)('an activity that fails with more %s than the server takes fails once, in shorter ones', async (_, message, details) => {
  const give = async () => {
    attempts++;
    throw ApplicationFailure.nonRetryable(message, 'Wordy', ...details);
  };
  await working({ give }, async () => {
    const failure = await failureOf(end('outOfActivity', 'much'));
    expect(failure.type).toBe('Wordy');
    expect(attempts).toBe(1);
    expect(failure.message.length).toBeLessThan(30_000);
  });
});
