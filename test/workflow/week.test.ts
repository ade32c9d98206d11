import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { distill } from '../../workflows/distill.ts';
import { declineCostUpdate, statusQuery } from '../../workflows/messages.ts';
import { timeSkippingServer, withWorkers } from './environment.ts';
import { fakeActivities, pinned } from './fake-activities.ts';

let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await timeSkippingServer();
});
afterAll(() => env?.teardown());

/** The time-skipping server leaves a query that meets a workflow task without an answer now and then: ask again. */
const QUERY_PATIENCE_MS = 3_000;

it('waits for a week without losing anything, and ends declined', async () => {
  await withWorkers(env, fakeActivities({ resolveRun: async () => pinned({ yes: false }) }), async (taskQueue) => {
    const input = { agent: 'turn', config: 'run.toml', taskIds: ['a', 'b'], holdoutTaskIds: ['x', 'y'] };
    const handle = await env.client.workflow.start<typeof distill>('distill', { taskQueue, workflowId: 'week', args: [input] });
    const ask = () => env.connection.withDeadline(Date.now() + QUERY_PATIENCE_MS, () => handle.query(statusQuery)).catch(() => null);
    await expect.poll(async () => (await ask())?.waitingFor?.kind, { timeout: 40_000 }).toBe('cost');
    await env.sleep('7 days');
    await handle.executeUpdate(declineCostUpdate, { args: [{ by: 'tester' }] });
    expect(await handle.result()).toMatchObject({ outcome: 'declined', evaluations: [] });
  });
});
