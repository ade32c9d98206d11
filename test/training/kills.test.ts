import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import type { RunResult, RunStatus } from '../../workflows/messages.ts';
import { on } from '../support/faults.ts';
import { localServer } from '../workflow/environment.ts';
import { serverOfFile } from '../workflow/runs.ts';
import { World } from './setting.ts';

/** The real workflow and the real training, with fixed trials: processes are killed and stopped under it, and its history is reset. */

const env = serverOfFile(localServer);
/** Each update is under way for a while: time to be killed in. */
const slowUpdates = (ms: number) => on('retrieve_future', { kind: 'pending', ms }, { for: 'OptimStep', times: 'always' });

const resultOf = (runId: string) => env().client.workflow.getHandle(runId).result() as Promise<RunResult>;
const statusOf = (runId: string) => env().client.workflow.getHandle(runId).query<RunStatus>('status');

let calm: { readonly curve: World['curve']; readonly scores: readonly number[] };
beforeAll(async () => {
  await using world = await World.make(env());
  await world.startWorker();
  const result = await world.start(resultOf);
  calm = { curve: world.curve, scores: await world.scores(result) };
}, 120_000);

async function expectSame(world: World, result: RunResult): Promise<void> {
  expect(result.outcome).toBe('accepted');
  expect(world.curve).toEqual(calm.curve);
  expect(await world.scores(result)).toEqual(calm.scores);
}

/** Waits until an update of the step is under way. */
const updateSent = (world: World, step: number) =>
  expect
    .poll(
      () => {
        const lines = world.journal();
        const intent = lines.findLastIndex(({ call }) => call?.startsWith(`update step-000${step}`));
        return intent >= 0 && lines[intent + 1]?.is === 'sent';
      },
      { timeout: 60_000, interval: 50 },
    )
    .toBe(true);

it('worker and trainer killed in every step: the loss curve is that of an undisturbed run, bit for bit', async () => {
  expect([...calm.curve.values()].map((losses) => losses.length)).toEqual([2, 2, 2]);
  await using world = await World.make(env(), [slowUpdates(700)]);
  let worker = await world.startWorker();
  await world.start(async (runId) => {
    for (const step of [1, 2, 3]) {
      await updateSent(world, step);
      worker.kill('SIGKILL');
      await world.trainer?.kill('SIGKILL');
      [worker] = await Promise.all([world.startWorker(), world.startTrainer()]);
    }
    await expectSame(world, await resultOf(runId));
  });
}, 240_000);

it('a worker that stands still is taken over from, and writes nothing when it goes on; a reset of the run rebuilds its training', async () => {
  await using world = await World.make(env(), [slowUpdates(1_500)]);
  const sleeper = await world.startWorker({ isDeaf: true });
  await world.start(async (runId) => {
    await updateSent(world, 2);
    sleeper.kill('SIGSTOP');
    const worker = await world.startWorker();
    const result = await resultOf(runId);
    const written = world.journal().length;
    expect(world.log).not.toContain('StaleAttempt');
    sleeper.kill('SIGCONT');
    await expect.poll(() => world.log, { timeout: 30_000 }).toContain('StaleAttempt');
    expect(world.journal()).toHaveLength(written);
    await expectSame(world, result);
    expect((await statusOf(runId)).notices.filter((notice) => notice.includes('rebuilt'))).toEqual([]);

    sleeper.kill('SIGKILL');
    await resetBefore(runId, 'step-0002');
    await expectSame(world, await resultOf(runId));
    expect((await statusOf(runId)).notices).toContainEqual(
      expect.stringMatching(/rebuilt from a fresh adapter .*another call than the plan.*1 batch trained again/),
    );
    expect(new Set(world.journal().map(({ generation }) => generation)).size).toBe(2);
    worker.kill('SIGKILL');
  });
}, 240_000);

/** Has a run that ended go on again from before it started a child. */
async function resetBefore(runId: string, child: string): Promise<void> {
  const { client } = env();
  const { events } = await client.workflow.getHandle(runId).fetchHistory();
  const started = events?.find((event) => event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId?.endsWith(child));
  const workflowTaskFinishEventId = started?.startChildWorkflowExecutionInitiatedEventAttributes?.workflowTaskCompletedEventId;
  if (!workflowTaskFinishEventId) throw new Error(`the run has started no ${child}`);
  await client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: runId },
    reason: 'a test',
    requestId: randomUUID(),
    workflowTaskFinishEventId,
  });
}
