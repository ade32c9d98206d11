import { randomUUID } from 'node:crypto';
import type { WorkflowHandle, WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect } from 'vitest';
import type { PinnedRun, RunPlan } from '../../core/run/pinned-run.ts';
import type { distill } from '../../workflows/distill.ts';
import { statusQuery } from '../../workflows/messages.ts';
import { workflowBundle } from '../support/bundle.ts';
import { untilCancelled } from './cancelled.ts';
import { withWorkers } from './environment.ts';
import { pinned, trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';

export type Handle = WorkflowHandleWithFirstExecutionRunId<typeof distill>;

/** What a run is started with, and what every decision says of itself. */
export const INPUT = { agent: 'turn', config: 'run.toml', taskIds: ['a', 'b', 'c'], holdoutTaskIds: ['x', 'y'] };
export const ask = { by: 'tester' };

/** The server of a test file, from its first test to its last. */
export function serverOfFile(start: () => Promise<TestWorkflowEnvironment>): () => TestWorkflowEnvironment {
  let env: TestWorkflowEnvironment | undefined;
  beforeAll(async () => {
    env = await start();
  });
  afterAll(() => env?.teardown());
  return () => {
    if (!env) throw new Error('the server is there while tests run');
    return env;
  };
}

/** Starts a run with the activities that a test names, and fakes for the others; its workers are there until the test is over. */
export const startIn =
  (env: () => TestWorkflowEnvironment) =>
  <T>(activities: Partial<AllActivities>, test: (handle: Handle) => Promise<T>, input: unknown = INPUT): Promise<T> =>
    withWorkers(env(), fakeActivities(activities), async (taskQueue) => {
      const options = { taskQueue, workflowId: `run-${randomUUID()}`, args: [input] };
      return test((await env().client.workflow.start('distill', options)) as Handle);
    });

/** A run as it is resolved, but for what the test names. */
export const resolvedAs =
  (over: Partial<PinnedRun>, plan: Partial<RunPlan> = {}): AllActivities['resolveRun'] =>
  async ({ runId }) =>
    pinned({ runId, ...over }, plan);

export const waitsFor = (handle: WorkflowHandle<typeof distill>, kind: string) =>
  expect.poll(async () => (await handle.query(statusQuery)).waitingFor?.kind, { timeout: 40_000 }).toBe(kind);

/** Makes activities that write down what matters of how they are called, and then do their work. */
export const notingIn =
  (calls: string[]) =>
  <Order, R>(told: (order: Order) => string, work: (order: Order) => R) =>
  (order: Order) => {
    calls.push(told(order));
    return work(order);
  };

/** Trials whose id contains `part` run until they are cancelled. */
export function trialsUntilCancelled(part: string, onStart: () => void): AllActivities['runTrial'] {
  return async (spec) => {
    if (!spec.trialId.includes(part)) return trialFor(spec);
    onStart();
    return untilCancelled();
  };
}

/** The newest execution of each workflow must come out the same from its history. */
export async function replay(env: TestWorkflowEnvironment, ...workflowIds: readonly string[]): Promise<void> {
  for (const id of workflowIds) {
    const history = await env.client.workflow.getHandle(id).fetchHistory();
    await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history, id);
  }
}
